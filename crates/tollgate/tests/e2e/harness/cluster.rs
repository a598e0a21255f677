//! An API server with its etcd, on loopback, with certificates and keys made for one test.
//!
//! Invariant: both end with the test: killed, since one with open watches takes its time. What is asked of etcd itself (`store`) is what an API
//! server would have done before it was killed.
//! Not here: controllers, nodes, pods: nothing runs in this cluster.

mod store;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::free_address;
use super::tls::{Authority, connect};

/// What the tokens of its service accounts say as `iss`.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const ADMIN: &str = "admin-token";
const RBAC: &str = "rbac.authorization.k8s.io";

pub(crate) struct Cluster {
    dir: TempDir,
    address: SocketAddr,
    authority: Authority,
    /// The keys of its service accounts' tokens.
    pub(crate) keys: String,
    etcd: Option<SocketAddr>,
    children: Vec<Child>,
}

impl Cluster {
    /// Starts one; none where the commands are not there.
    pub(crate) fn start() -> Option<Self> {
        let Some(binaries) = std::env::var_os("TOLLGATE_E2E_KUBERNETES") else {
            testing::skip(
                "TOLLGATE_E2E_KUBERNETES names no kube-apiserver (cargo xtask kubernetes)",
            );
            return None;
        };
        let binaries = Path::new(&binaries);
        let mut cluster = Self {
            dir: tempfile::tempdir().expect("a temporary directory"),
            address: free_address(),
            authority: Authority::named("throwaway cluster"),
            keys: String::new(),
            etcd: None,
            children: Vec::new(),
        };
        cluster.write_files();
        let (clients, peers) = (free_address(), free_address());
        let mut etcd = Command::new(binaries.join("etcd"));
        etcd.arg("--data-dir").arg(cluster.dir.path().join("etcd"));
        etcd.arg(format!("--listen-client-urls=http://{clients}"));
        etcd.arg(format!("--advertise-client-urls=http://{clients}"));
        etcd.arg(format!("--listen-peer-urls=http://{peers}"));
        etcd.arg("--unsafe-no-fsync");
        cluster.run(etcd, "etcd.log");
        testing::eventually("etcd listens", || {
            std::net::TcpStream::connect(clients).is_ok()
        });
        cluster.etcd = Some(clients);
        cluster.start_server();
        let keys = cluster.ask(Method::GET, "/openid/v1/jwks", &Value::Null);
        cluster.keys = keys.1.to_string();
        Some(cluster)
    }

    /// Starts the API server, on what etcd holds.
    fn start_server(&mut self) {
        let binaries = std::env::var_os("TOLLGATE_E2E_KUBERNETES").expect("it was there");
        let etcd = self.etcd.expect("etcd listens");
        let server = self.server(&Path::new(&binaries).join("apiserver"), etcd);
        self.run(server, "apiserver.log");
        self.until_ready();
    }

    /// Kills the API server, and starts it anew: it knows what is, and nothing of what happened.
    pub(crate) fn restart_server(&mut self, meanwhile: impl FnOnce(&Self)) {
        let mut server = self.children.pop().expect("it runs");
        server.kill().expect("it is killed");
        server.wait().expect("it ended");
        meanwhile(self);
        self.start_server();
    }

    /// What a client needs to reach it with a token.
    pub(crate) fn kubeconfig(&self, token: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: t\n\
             contexts: [ {{ name: t, context: {{ cluster: t, user: t, namespace: tollgate }} }} ]\n\
             clusters: [ {{ name: t, cluster: {{ server: \"https://{}\", certificate-authority: ca.pem }} }} ]\n\
             users: [ {{ name: t, user: {{ token: {token} }} }} ]\n",
            self.address
        )
    }

    /// Applies the objects of a text as its administrator, each as it stands.
    pub(crate) fn apply(&self, text: &str) {
        for object in objects(text) {
            let path = format!("{}?fieldManager=test&force=true", path_of(&object));
            let sent = Sent::Text("application/apply-patch+yaml", object.to_string());
            let (status, said) = self.send(Method::PATCH, &path, sent);
            assert!(matches!(status, 200 | 201), "{path}: {said}");
        }
    }

    /// Makes these objects, each new, over one connection.
    pub(crate) fn make_all(&self, objects: &[Value]) {
        self.runs(async {
            let mut sender = self.connected().await;
            for object in objects {
                let path = path_of(object);
                let (collection, _) = path.rsplit_once('/').expect("a collection");
                let sent = Sent::Text("application/json", object.to_string());
                let request = self.request(ADMIN, Method::POST, collection, sent);
                let (status, said) = answered(&mut sender, request).await;
                assert_eq!(status, 201, "{path}: {}", String::from_utf8_lossy(&said));
            }
        });
    }

    /// What it says of an object that is not made: the status, and why.
    pub(crate) fn tries(&self, object: &Value) -> (u16, String) {
        let path = path_of(object);
        let (collection, _) = path.rsplit_once('/').expect("a collection");
        let path = format!("{collection}?dryRun=All");
        let (status, said) = self.ask(Method::POST, &path, object);
        (status, said["message"].to_string())
    }

    /// Merges this into each of these objects, over one connection.
    pub(crate) fn patch_all(&self, patches: &[(String, Value)]) {
        self.runs(async {
            let mut sender = self.connected().await;
            for (path, patch) in patches {
                let sent = Sent::Text("application/merge-patch+json", patch.to_string());
                let request = self.request(ADMIN, Method::PATCH, path, sent);
                let (status, said) = answered(&mut sender, request).await;
                assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&said));
            }
        });
    }

    /// What the API server counts of itself: the sum of the lines of a metric that have all of these labels.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let text = self.said("/metrics");
        let lines = text.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let is_it = series.split('{').next() == Some(name);
            let has_all = labels.iter().all(|label| series.contains(label));
            (is_it && has_all).then(|| value.parse::<f64>().unwrap_or(0.0))
        });
        lines.sum()
    }

    /// What it answers, whatever that is.
    pub(crate) fn said(&self, path: &str) -> String {
        let answer = self.runs(async {
            let mut sender = self.connected().await;
            let request = self.request(ADMIN, Method::GET, path, Sent::Nothing);
            answered(&mut sender, request).await
        });
        format!("{} {}", answer.0, String::from_utf8_lossy(&answer.1))
    }

    /// Whether somebody may do what they ask for, by their token.
    pub(crate) fn get_as(&self, token: &str, path: &str) -> u16 {
        self.ask_as(token, Method::GET, path, Sent::Nothing).0
    }

    /// An object as it is.
    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, said) = self.ask(Method::GET, path, &Value::Null);
        assert_eq!(status, 200, "{path}: {said}");
        said
    }

    /// Says something of an object, as its administrator.
    pub(crate) fn patch_status(&self, path: &str, status: &Value) {
        let patch = json!({ "status": status }).to_string();
        let sent = Sent::Text("application/merge-patch+json", patch);
        let (code, said) = self.send(Method::PATCH, &format!("{path}/status"), sent);
        assert_eq!(code, 200, "{said}");
    }

    fn write_files(&self) {
        let leaf = self.authority.leaf("127.0.0.1");
        let signing = include_str!("../../../../../vectors/jose/keys/rsa.pem");
        let users = format!("{ADMIN},admin,admin-uid,\"system:masters\"\n");
        for (name, text) in [
            ("server.pem", &*leaf.certificate),
            ("server.key", &leaf.key),
            ("accounts.key", signing),
            ("users.csv", &users),
        ] {
            std::fs::write(self.dir.path().join(name), text).expect("a file");
        }
    }

    fn server(&self, binary: &Path, etcd: SocketAddr) -> Command {
        let file = |name: &str| self.dir.path().join(name).display().to_string();
        let mut command = Command::new(binary);
        command.args([
            format!("--etcd-servers=http://{etcd}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.address.port()),
            format!("--cert-dir={}", file("")),
            format!("--tls-cert-file={}", file("server.pem")),
            format!("--tls-private-key-file={}", file("server.key")),
            "--authorization-mode=RBAC".to_owned(),
            format!("--token-auth-file={}", file("users.csv")),
            format!("--service-account-issuer={ISSUER}"),
            format!("--service-account-key-file={}", file("accounts.key")),
            format!(
                "--service-account-signing-key-file={}",
                file("accounts.key")
            ),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
        ]);
        command
    }

    fn run(&mut self, mut command: Command, log: &str) {
        let log = std::fs::File::create(self.dir.path().join(log)).expect("a file");
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("it starts");
        self.children.push(child);
    }

    fn until_ready(&mut self) {
        let log = self.dir.path().join("apiserver.log");
        let mut children = std::mem::take(&mut self.children);
        testing::eventually("/readyz is 200", || {
            for child in &mut children {
                if let Some(status) = child.try_wait().expect("the child can be asked") {
                    let log = std::fs::read_to_string(&log).unwrap_or_default();
                    panic!("a server ended with {status}:\n{log}");
                }
            }
            let listens = std::net::TcpStream::connect(self.address).is_ok();
            listens && self.ask(Method::GET, "/readyz", &Value::Null).0 == 200
        });
        self.children = children;
    }

    /// The root that its certificate is trusted by.
    pub(crate) fn ca(&self) -> &str {
        &self.authority.certificate
    }

    /// The fields by which a gate reaches it, with the files `ca.pem` and `own`.
    pub(crate) fn fields(&self) -> String {
        format!(
            "server: https://{}, ca: ca.pem, token: {{ file: own }}",
            self.address
        )
    }

    /// Makes a service account, with its namespace where that is new, and gives a token of it.
    pub(crate) fn account(&self, namespace: &str, name: &str, audience: &str) -> String {
        let named = |kind: &str, name: &str| json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name } });
        let (status, said) = self.ask(
            Method::POST,
            "/api/v1/namespaces",
            &named("Namespace", namespace),
        );
        assert!(matches!(status, 201 | 409), "{status} {said}");
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        self.make(&accounts, &named("ServiceAccount", name));
        self.token(namespace, name, audience)
    }

    /// A token of a service account, for an hour.
    pub(crate) fn token(&self, namespace: &str, name: &str, audience: &str) -> String {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let asked = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": { "audiences": [audience], "expirationSeconds": 3600 },
        });
        let made = self.make(&path, &asked);
        made["status"]["token"]
            .as_str()
            .expect("a token")
            .to_owned()
    }

    /// Lets a service account ask for reviews.
    pub(crate) fn binds_delegator(&self, namespace: &str, name: &str) {
        let binding = json!({
            "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
            "metadata": { "name": format!("{namespace}-{name}") },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": "system:auth-delegator" },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": namespace }],
        });
        self.make(&format!("/apis/{RBAC}/v1/clusterrolebindings"), &binding);
    }

    /// A role, and its binding to a subject, by which it may use the model of that name.
    pub(crate) fn allows(&self, namespace: &str, model: &str, subject: &Value) {
        let version = format!("{RBAC}/v1");
        let role = json!({
            "apiVersion": version, "kind": "Role", "metadata": { "name": model },
            "rules": [{ "apiGroups": ["gate.test"], "resources": ["models"], "resourceNames": [model], "verbs": ["use"] }],
        });
        let binding = json!({
            "apiVersion": version, "kind": "RoleBinding", "metadata": { "name": model },
            "roleRef": { "apiGroup": RBAC, "kind": "Role", "name": model },
            "subjects": [subject],
        });
        let within = format!("/apis/{version}/namespaces/{namespace}");
        self.make(&format!("{within}/roles"), &role);
        self.make(&format!("{within}/rolebindings"), &binding);
    }

    /// Deletes an object.
    pub(crate) fn delete(&self, path: &str) {
        let (status, said) = self.ask(Method::DELETE, path, &Value::Null);
        assert_eq!(status, 200, "{path}: {said}");
    }

    fn make(&self, path: &str, object: &Value) -> Value {
        let (status, said) = self.ask(Method::POST, path, object);
        assert_eq!(status, 201, "{path}: {said}");
        said
    }

    /// Asks it as its administrator.
    fn ask(&self, method: Method, path: &str, object: &Value) -> (u16, Value) {
        let sent = match object {
            Value::Null => Sent::Nothing,
            object => Sent::Text("application/json", object.to_string()),
        };
        self.send(method, path, sent)
    }

    fn send(&self, method: Method, path: &str, sent: Sent) -> (u16, Value) {
        self.ask_as(ADMIN, method, path, sent)
    }

    fn ask_as(&self, token: &str, method: Method, path: &str, sent: Sent) -> (u16, Value) {
        let (status, body) = self.runs(async {
            let mut sender = self.connected().await;
            let request = self.request(token, method, path, sent);
            answered(&mut sender, request).await
        });
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    fn runs<T>(&self, what: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(what)
    }

    async fn connected(&self) -> SendRequest<Full<Bytes>> {
        let tls = connect(self.address, "127.0.0.1", self.ca(), &[b"http/1.1"]).await;
        let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(tls))
            .await
            .expect("HTTP");
        tokio::spawn(connection);
        sender
    }

    fn request(&self, token: &str, method: Method, path: &str, sent: Sent) -> Request<Full<Bytes>> {
        let (media, body) = match sent {
            Sent::Nothing => ("application/json", String::new()),
            Sent::Text(media, text) => (media, text),
        };
        Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.address.to_string())
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", media)
            .body(Full::new(Bytes::from(body)))
            .expect("a request")
    }
}

async fn answered(
    sender: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> (u16, Bytes) {
    sender.ready().await.expect("it takes another request");
    let response = sender.send_request(request).await.expect("a response");
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body");
    (status, body.to_bytes())
}

/// Says a figure past the harness, which keeps what a passing test prints to itself.
pub(crate) fn figure(what: &str, is: &str) {
    let line = format!("kube-apiserver: {what}: {is}\n");
    drop(std::io::stderr().write_all(line.as_bytes()));
}

/// What is sent with a request, and its media type.
enum Sent {
    Nothing,
    Text(&'static str, String),
}

/// The objects of a text: of YAML, or, each on a line, of JSON.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    let json: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    if !json.is_empty() {
        return json;
    }
    let nodes = config::parse_all(text).expect("YAML");
    let objects = nodes.iter().map(json_of);
    objects.filter(|object| object.is_object()).collect()
}

fn json_of(node: &config::Node) -> Value {
    use config::{Shape, Value as Yaml};
    match &node.value {
        Yaml::Map(entries) => {
            let member = |entry: &config::Entry| (entry.key.clone(), json_of(&entry.node));
            Value::Object(entries.iter().map(member).collect())
        }
        Yaml::List(items) => items.iter().map(json_of).collect(),
        Yaml::Scalar(scalar) => match scalar.shape() {
            Shape::Text => json!(scalar.raw),
            Shape::Number | Shape::Boolean => serde_json::from_str(&scalar.raw).expect("JSON"),
            Shape::Nothing => Value::Null,
        },
    }
}

/// Where an object is.
pub(crate) fn path_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let root = if version.contains('/') { "apis" } else { "api" };
    let lower = kind.to_ascii_lowercase();
    let plural = match lower.as_str() {
        "gatewayclass" => "gatewayclasses".to_owned(),
        lower if lower.ends_with("policy") || lower.ends_with("proxy") => {
            format!("{}ies", &lower[..lower.len() - 1])
        }
        lower => format!("{lower}s"),
    };
    let of_all = [
        "GatewayClass",
        "Namespace",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
    ];
    let namespace = match object["metadata"]["namespace"].as_str() {
        _ if of_all.contains(&kind.as_str()) => String::new(),
        namespace => format!("namespaces/{}/", namespace.unwrap_or("default")),
    };
    let name = text(&object["metadata"]["name"]);
    format!("/{root}/{version}/{namespace}{plural}/{name}")
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
