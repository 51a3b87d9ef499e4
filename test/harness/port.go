package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Ports are taken from below the range the system gives to outgoing
// connections. Otherwise any connection on the machine could take the port of
// a server that a test has stopped and wants back.
const (
	lowPort  = 20000
	highPort = 32000
)

// FreeAddr returns a loopback address nobody listens on. No other test process
// of this user gets the same one before the test ends.
func FreeAddr(t testing.TB) string {
	t.Helper()
	port, release, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return loopback(port)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// reservePort picks a free port and keeps other test processes from picking it
// until release is called. Others may still take it, so a server that finds
// its port in use has to try another.
func reservePort() (port int, release func(), err error) {
	cache, err := cacheFolder()
	if err != nil {
		return 0, nil, err
	}
	dir := filepath.Join(cache, "ports")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, nil, err
	}
	for range 200 {
		port := lowPort + rand.IntN(highPort-lowPort)
		lock, err := tryLock(filepath.Join(dir, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			_ = lock.Close()
			continue
		}
		_ = listener.Close()
		return port, func() { _ = lock.Close() }, nil
	}
	return 0, nil, fmt.Errorf("no free port between %d and %d", lowPort, highPort)
}
