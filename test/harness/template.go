package harness

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	// Raised when the way templates are made changes.
	templateFormat = 1
	// Systems remove old temporary files one by one. A template is made anew
	// before that can leave half of it.
	templateAge = 24 * time.Hour
	// Long enough for several test processes in a row.
	templateWait = 5 * time.Minute
)

// fromTemplate fills the folder data with the files of a fresh database server.
// Making these takes seconds, so it is done once per server version, by make,
// and copied from then on. A lock makes other test processes wait meanwhile.
func fromTemplate(name, program, data string, as account, make func(data string) error) error {
	output, err := exec.Command(program, "--version").Output()
	if err != nil {
		return fmt.Errorf("%s --version: %w", program, err)
	}
	cache, err := cacheFolder()
	if err != nil {
		return err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", templateFormat, program, output))
	template := filepath.Join(cache, fmt.Sprintf("%s-%x", name, sum[:6]))
	lock, err := waitLock(template+".lock", templateWait)
	if err != nil {
		return err
	}
	defer lock.Close()
	if info, err := os.Stat(template); err != nil || time.Since(info.ModTime()) > templateAge {
		if err := os.RemoveAll(template); err != nil {
			return err
		}
		if err := makeTemplate(template, as, make); err != nil {
			return fmt.Errorf("make the data of a new %s: %w", name, err)
		}
	}
	return copyTree(template, data, as)
}

// makeTemplate works aside and moves the result, so that a template is either
// whole or not there.
func makeTemplate(template string, as account, make func(data string) error) error {
	place, err := newFolder()
	if err != nil {
		return err
	}
	defer place.remove()
	data := filepath.Join(place.path, "data")
	if err := as.mkdir(data); err != nil {
		return err
	}
	if err := make(data); err != nil {
		return err
	}
	now := time.Now()
	if err := os.Chtimes(data, now, now); err != nil {
		return err
	}
	return os.Rename(data, template)
}

// copyTree copies folders and plain files; a stopped server has no others.
func copyTree(from, to string, as account) error {
	return filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		switch {
		case entry.IsDir():
			return as.mkdir(target)
		case entry.Type().IsRegular():
			if err := copyFile(path, target); err != nil {
				return err
			}
			return as.own(target)
		}
		return nil
	})
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		_ = target.Close()
		return err
	}
	return target.Close()
}
