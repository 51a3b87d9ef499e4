//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockFolder keeps a second process out of a data folder: the stock lives in
// the first one's memory. The lock ends with the process, however it ends.
func lockFolder(folder string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errors.New("another process uses it: stop that one or choose another folder")
		}
		return nil, fmt.Errorf("--data %s: %w", folder, err)
	}
	return func() { _ = file.Close() }, nil
}
