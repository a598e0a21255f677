package main

import (
	"context"
	"io"
	"net"
	"strconv"
)

// Passes connections to a port of the address that pods see on to the same port of loopback, where the API server is.
func forward(context context.Context, address string, port int) error {
	at := strconv.Itoa(port)
	listener, err := net.Listen("tcp", net.JoinHostPort(address, at))
	if err != nil {
		return err
	}
	go func() {
		<-context.Done()
		_ = listener.Close()
	}()
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go pass(near, net.JoinHostPort("127.0.0.1", at))
		}
	}()
	return nil
}

func pass(near net.Conn, to string) {
	defer near.Close()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	done := make(chan struct{}, 2)
	copying := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go copying(far, near)
	go copying(near, far)
	<-done
}
