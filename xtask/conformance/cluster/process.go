package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A process that was started here, with its log.
type process struct {
	command *exec.Cmd
	ended   chan struct{}
}

// Starts a program; what it says goes to a file of this name.
func start(work, name string, environment []string, program string, arguments ...string) (*process, error) {
	log, err := os.Create(filepath.Join(work, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = log, log
	// It ends with this process, however that ends.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, err
	}
	started := &process{command, make(chan struct{})}
	go func() {
		_ = command.Wait()
		close(started.ended)
	}()
	return started, nil
}

// Asks a process to end, and ends it where it does not within the time.
func (p *process) end(within time.Duration) {
	if p == nil {
		return
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(within):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
