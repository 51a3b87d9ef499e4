//go:build !unix

package main

// lockFolder does nothing here: do not run two processes on one data folder.
func lockFolder(string) (unlock func(), err error) { return func() {}, nil }
