package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What pods have said, as the API server asks a kubelet for it: from the beginning, or from a moment on.
type logs struct {
	listener net.Listener
	lock     sync.Mutex
	// Of each log how long it was when, in that order.
	grown map[string][]mark
	work  string
}

type mark struct {
	at    time.Time
	bytes int64
}

func startLogs(work, host string) (*logs, error) {
	certificate, err := ownCertificate()
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(host, "0"), &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return nil, err
	}
	made := &logs{listener: listener, grown: map[string][]mark{}, work: work}
	go func() { _ = http.Serve(listener, made) }()
	return made, nil
}

func (l *logs) port() int32 {
	return int32(l.listener.Addr().(*net.TCPAddr).Port)
}

// Notes how long the logs are by now.
func (l *logs) look() {
	files, _ := filepath.Glob(filepath.Join(l.work, "pod-*.log"))
	l.lock.Lock()
	defer l.lock.Unlock()
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			continue
		}
		marks := l.grown[file]
		if len(marks) == 0 || marks[len(marks)-1].bytes != info.Size() {
			l.grown[file] = append(marks, mark{time.Now(), info.Size()})
		}
	}
}

// Where in a log the first word after a moment may stand.
func (l *logs) after(file string, since time.Time) int64 {
	l.lock.Lock()
	defer l.lock.Unlock()
	var from int64
	for _, mark := range l.grown[file] {
		if !mark.at.Before(since) {
			break
		}
		from = mark.bytes
	}
	return from
}

func (l *logs) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	words := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if len(words) != 4 || words[0] != "containerLogs" {
		http.NotFound(answer, request)
		return
	}
	path := filepath.Join(l.work, fmt.Sprintf("pod-%s-%s.log", words[1], words[2]))
	file, err := os.Open(path)
	if err != nil {
		http.NotFound(answer, request)
		return
	}
	defer file.Close()
	query := request.URL.Query()
	since, err := time.Parse(time.RFC3339, query.Get("sinceTime"))
	if seconds, no := strconv.Atoi(query.Get("sinceSeconds")); no == nil {
		since, err = time.Now().Add(-time.Duration(seconds)*time.Second), nil
	}
	if err == nil {
		if _, err := file.Seek(l.after(path, since), io.SeekStart); err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	_, _ = io.Copy(answer, file)
}

// A certificate that nobody vouches for: the API server does not ask who a kubelet is unless told to.
func ownCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}, err
}
