// Package shop is another program's module. Its examples show how to use the
// engine in the same process, without HTTP, and how to swap an adapter.
package shop
