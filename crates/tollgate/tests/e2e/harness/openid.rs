//! An OpenID provider, `oidc-provider` with the clients and accounts of `openid/provider.mjs`, ended when dropped.
//!
//! Invariant: it ends with this process, however that ends, because it reads from it.
//! Not here: what its clients and accounts are, which the script says; assertions.

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Child, Stdio};

use serde_json::json;
use tempfile::TempDir;
use testing::eventually;

use super::sdk::node;
use super::{Connection, Response};

/// Whom its tokens for the gate are for.
pub(crate) const AUDIENCE: &str = "https://gate.test/";

/// A running provider.
pub(crate) struct OpenId {
    address: SocketAddr,
    dir: TempDir,
    child: Child,
}

impl OpenId {
    /// Starts it at an address, with the addresses to which a login may come back.
    pub(crate) fn start(address: SocketAddr, redirects: &[String]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = |name| std::fs::File::create(dir.path().join(name)).expect("a file");
        let mut child = node("openid/provider.mjs")
            .stdin(Stdio::piped())
            .stdout(file("out"))
            .stderr(file("err"))
            .spawn()
            .expect("Node starts");
        let told = json!({ "port": address.port(), "redirects": redirects });
        let input = child.stdin.as_mut().expect("a pipe");
        writeln!(input, "{told}").expect("it reads");
        let mut provider = Self {
            address,
            dir,
            child,
        };
        provider.until_ready();
        provider
    }

    fn until_ready(&mut self) {
        eventually("the provider is ready", || {
            if let Some(status) = self.child.try_wait().expect("the child can be asked") {
                panic!("the provider ended with {status}:\n{}", self.read("err"));
            }
            self.read("out").contains("ready")
        });
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap_or_default()
    }

    /// What its tokens name as their issuer.
    pub(crate) fn issuer(&self) -> String {
        issuer(self.address)
    }

    /// An access token of a client, for whom `audience` says.
    pub(crate) fn token(&self, client: &str, audience: &str) -> String {
        let form = format!("grant_type=client_credentials&scope=call&resource={audience}");
        let answer = self.form("/token", client, &form);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let token = &answer.json()["access_token"];
        token.as_str().expect("a token").to_owned()
    }

    /// Takes a token of a client back.
    pub(crate) fn revoke(&self, client: &str, token: &str) {
        let answer = self.form("/token/revocation", client, &format!("token={token}"));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// Publishes the keys that go by these names, and signs with those of `signing` from now on.
    pub(crate) fn set_keys(&self, published: &[&str], signing: &str) {
        let told = json!({ "published": published, "signing": signing });
        let answer = self.post("/test/keys", "content-type: application/json", &told);
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    fn form(&self, path: &str, client: &str, form: &str) -> Response {
        let kind = "content-type: application/x-www-form-urlencoded";
        let form = format!("client_id={client}&client_secret={client}-secret&{form}");
        self.post(path, kind, &form)
    }

    fn post(&self, path: &str, line: &str, body: &dyn ToString) -> Response {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\n{line}\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        Connection::open(self.address).call(request.as_bytes())
    }
}

/// The issuer at an address, before it is there too.
pub(crate) fn issuer(address: SocketAddr) -> String {
    format!("http://{address}")
}

impl Drop for OpenId {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking() {
            let said = format!("provider: {}", self.read("err"));
            drop(writeln!(std::io::stderr(), "{said}"));
        }
    }
}
