package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const (
	token      = "admin-token"
	className  = "tollgate"
	controller = "tollgate/gateway"
)

// etcd, kube-apiserver and kube-controller-manager.
type controlPlane struct {
	processes  []*process
	kubeconfig string
	port       int
	client     *kubernetes.Clientset
	dynamic    dynamic.Interface
}

func startControlPlane(context context.Context, place places) (*controlPlane, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	work := place.work
	in := func(name string) string { return filepath.Join(work, name) }
	control := &controlPlane{kubeconfig: in("kubeconfig"), port: ports[2]}
	etcdAddress := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	server := fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	if err := writeKeys(in("sa.key"), in("sa.pub")); err != nil {
		return nil, err
	}
	if err := os.WriteFile(in("tokens.csv"), []byte(token+",admin,admin-uid,\"system:masters\"\n"), 0o600); err != nil {
		return nil, err
	}
	etcd, err := start(work, "etcd", nil, filepath.Join(place.servers, "etcd"),
		"--data-dir", in("etcd"), "--listen-client-urls", etcdAddress, "--advertise-client-urls", etcdAddress,
		"--listen-peer-urls", fmt.Sprintf("http://127.0.0.1:%d", ports[1]), "--unsafe-no-fsync")
	if err != nil {
		return nil, err
	}
	control.processes = append(control.processes, etcd)
	api, err := start(work, "apiserver", nil, filepath.Join(place.servers, "apiserver"),
		"--etcd-servers="+etcdAddress, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[2]),
		"--cert-dir="+in("certificates"), "--authorization-mode=RBAC", "--token-auth-file="+in("tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+in("sa.pub"), "--service-account-signing-key-file="+in("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none",
		"--kubelet-preferred-address-types=InternalIP",
		// Pods here have no account's token mounted.
		"--disable-admission-plugins=ServiceAccount")
	if err != nil {
		return control, err
	}
	control.processes = append(control.processes, api)
	roots, err := awaitFile(context, filepath.Join(in("certificates"), "apiserver.crt"), api)
	if err != nil {
		return control, err
	}
	authority := filepath.Join(in("certificates"), "apiserver.crt")
	ofPods := fmt.Sprintf("https://%s:%d", bridgeAddress(), ports[2])
	for file, address := range map[string]string{control.kubeconfig: server, podsKubeconfig(work): ofPods} {
		if err := os.WriteFile(file, []byte(kubeconfig(address, authority)), 0o600); err != nil {
			return control, err
		}
	}
	config := &rest.Config{Host: server, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: roots}, QPS: 200, Burst: 400}
	if control.client, err = kubernetes.NewForConfig(config); err != nil {
		return control, err
	}
	if control.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return control, err
	}
	ready := func() bool {
		status := 0
		control.client.RESTClient().Get().AbsPath("/readyz").Do(context).StatusCode(&status)
		return status == http.StatusOK
	}
	if err := await(context, time.Minute, api, ready); err != nil {
		return control, fmt.Errorf("kube-apiserver is not ready: %w", err)
	}
	manager, err := start(work, "controllermanager", nil, filepath.Join(place.servers, "controllermanager"),
		"--kubeconfig="+control.kubeconfig, "--leader-elect=false", "--service-account-private-key-file="+in("sa.key"),
		"--controllers=deployment,replicaset,endpointslice,namespace,garbagecollector", "--secure-port=0")
	if err != nil {
		return control, err
	}
	control.processes = append(control.processes, manager)
	return control, nil
}

func (c *controlPlane) stop() {
	for at := len(c.processes) - 1; at >= 0; at-- {
		// An API server with open watches takes a minute to end; nothing of it is kept.
		_ = c.processes[at].command.Process.Kill()
		<-c.processes[at].ended
	}
}

// Installs the kinds of a directory.
func (c *controlPlane) install(context context.Context, directory string) error {
	files, err := filepath.Glob(filepath.Join(directory, "*.yaml"))
	if err != nil {
		return err
	}
	kinds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var object unstructured.Unstructured
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if _, err := c.dynamic.Resource(kinds).Create(context, &object, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// Adds the class of Gateways, as soon as the kind is served.
func (c *controlPlane) addClass(context context.Context) error {
	class := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
		"metadata": map[string]any{"name": className},
		"spec":     map[string]any{"controllerName": controller},
	}}
	classes := gatewayAPI("gatewayclasses")
	served := func() bool {
		_, err := c.dynamic.Resource(classes).Create(context, class, metav1.CreateOptions{})
		return err == nil
	}
	return await(context, 30*time.Second, nil, served)
}

func gatewayAPI(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: resource}
}

func kubeconfig(server, roots string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: lane
contexts: [ { name: lane, context: { cluster: lane, user: admin, namespace: default } } ]
clusters: [ { name: lane, cluster: { server: "%s", tls-server-name: "127.0.0.1", certificate-authority: "%s" } } ]
users: [ { name: admin, user: { token: %s } } ]
`, server, roots, token)
}

// The key pair by which service accounts' tokens are signed.
func writeKeys(private, public string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	of := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := os.WriteFile(private, pem.EncodeToMemory(of), 0o600); err != nil {
		return err
	}
	bytes, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return os.WriteFile(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: bytes}), 0o600)
}

// Ports of loopback that were free a moment ago, all different.
func freePorts(count int) ([]int, error) {
	var ports []int
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func awaitFile(context context.Context, path string, of *process) ([]byte, error) {
	var text []byte
	err := await(context, time.Minute, of, func() bool {
		var err error
		text, err = os.ReadFile(path)
		return err == nil && len(text) > 0
	})
	return text, err
}

// Waits until something is so, while a process lives that it depends on.
func await(context context.Context, within time.Duration, of *process, isSo func() bool) error {
	over := time.After(within)
	for !isSo() {
		var ended chan struct{}
		if of != nil {
			ended = of.ended
		}
		select {
		case <-context.Done():
			return context.Err()
		case <-ended:
			return fmt.Errorf("%s ended: its log says why", of.command.Path)
		case <-over:
			return fmt.Errorf("not within %s", within)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}
