package harness

import (
	"bytes"
	"sync"
)

// Buffer collects a program's output and may be read while it is written.
type Buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

// Write adds to the buffer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

// String returns everything written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}
