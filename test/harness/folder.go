package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const folderPattern = "seckill-run-"

// folder is a temporary folder with a lock held for as long as it is in use,
// so that a later test process can tell a leftover from a folder in use.
type folder struct {
	path string
	lock *os.File
}

var sweepOnce sync.Once

func newFolder() (*folder, error) {
	sweepOnce.Do(sweep)
	path, err := os.MkdirTemp(tempBase(), folderPattern)
	if err != nil {
		return nil, err
	}
	// Servers may run as another user and must be able to reach their data.
	if err := os.Chmod(path, 0o711); err != nil {
		return nil, err
	}
	lock, err := tryLock(filepath.Join(path, "lock"))
	if err != nil {
		return nil, err
	}
	return &folder{path: path, lock: lock}, nil
}

func (f *folder) remove() error {
	err := os.RemoveAll(f.path)
	_ = f.lock.Close()
	return err
}

// sweep removes folders of test processes that were killed. Young folders are
// left alone: their owner may be about to take the lock.
func sweep() {
	paths, _ := filepath.Glob(filepath.Join(tempBase(), folderPattern+"*"))
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || !ownedByUs(info) || time.Since(info.ModTime()) < 10*time.Minute {
			continue
		}
		lock, err := tryLock(filepath.Join(path, "lock"))
		if err != nil {
			continue
		}
		_ = os.RemoveAll(path)
		_ = lock.Close()
	}
}

// cacheFolder is this user's folder for what outlives a test process.
func cacheFolder() (string, error) {
	path := filepath.Join(tempBase(), fmt.Sprintf("seckill-cache-%d", os.Geteuid()))
	if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
		return "", err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || !ownedByUs(info) {
		return "", fmt.Errorf("%s belongs to someone else; remove it", path)
	}
	return path, nil
}

func ownedByUs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// tempBase is the system's folder for temporary files. Root may have a private
// one, where servers that run as another user could not enter.
func tempBase() string {
	base := os.TempDir()
	if os.Geteuid() != 0 {
		return base
	}
	for dir := base; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return "/tmp"
		}
		if dir == filepath.Dir(dir) {
			return base
		}
	}
}

// tryLock takes the lock file or fails at once. The system gives the lock back
// when the process ends, however it ends.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// waitLock takes the lock file as soon as it is free.
func waitLock(path string, timeout time.Duration) (*os.File, error) {
	deadline := time.Now().Add(timeout)
	for {
		lock, err := tryLock(path)
		if err == nil {
			return lock, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
