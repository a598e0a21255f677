//! What etcd is asked itself, over its JSON gateway: to forget, and what is gone while no API server runs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use super::Cluster;

impl Cluster {
    /// Takes an object out of etcd, as an API server would have that ended right then.
    pub(crate) fn loses(&self, group: &str, plural: &str, namespace: &str, name: &str) {
        let key = BASE64.encode(format!("/registry/{group}/{plural}/{namespace}/{name}"));
        let said = self.etcd("/v3/kv/deleterange", &json!({ "key": key }));
        assert_eq!(said["deleted"], "1", "{said}");
    }

    /// Has etcd forget all that was before now; gives the version that is now.
    pub(crate) fn compact(&self) -> u64 {
        let said = self.etcd("/v3/kv/range", &json!({ "key": BASE64.encode("/") }));
        let revision = said["header"]["revision"].as_str().expect("a revision");
        let compacted = json!({ "revision": revision, "physical": true });
        self.etcd("/v3/kv/compaction", &compacted);
        revision.parse().expect("a number")
    }

    fn etcd(&self, path: &str, question: &Value) -> Value {
        let address = self.etcd.expect("etcd listens");
        let mut tcp = TcpStream::connect(address).expect("etcd listens");
        tcp.set_read_timeout(Some(testing::PATIENCE))
            .expect("a socket option");
        let body = question.to_string();
        let head = format!(
            "POST {path} HTTP/1.0\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let sent = tcp.write_all(head.as_bytes());
        sent.and_then(|()| tcp.write_all(body.as_bytes()))
            .expect("etcd reads");
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).expect("etcd answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.contains(" 200 "), "{path}: {answer}");
        serde_json::from_str(body.trim()).expect("JSON")
    }
}
