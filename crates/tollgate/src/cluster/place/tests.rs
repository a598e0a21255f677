//! Kubeconfigs, of files as tools write them.

use super::*;

fn of(text: &str) -> Result<Place, String> {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("config");
    std::fs::write(&file, text).expect("a file");
    let directory = format!("{}/", dir.path().display());
    of_file(&file).map_err(|says| says.replace(&directory, ""))
}

const CONFIG: &str = "apiVersion: v1
kind: Config
current-context: here
contexts:
- name: here
  context: { cluster: c, user: u, namespace: gates }
clusters:
- name: c
  cluster: { server: 'https://127.0.0.1:6443' }
users:
- name: u
  user: { token: secret-token }
";

#[test]
fn the_current_context_says_where_and_who() {
    let place = of(CONFIG).unwrap_or_else(|says| panic!("{says}"));
    assert_eq!(place.namespace, "gates");
    assert_eq!(place.server.url.authority(), "127.0.0.1:6443");
    let place =
        of(&CONFIG.replace(", namespace: gates", "")).unwrap_or_else(|says| panic!("{says}"));
    assert_eq!(place.namespace, "default");
}

#[test]
fn a_kubeconfig_that_names_nobody_or_trusts_everybody_is_refused_and_no_secret_is_said() {
    for (old, new, says) in [
        (
            "current-context: here",
            "current-context: there",
            "config: has no context \"there\" among contexts",
        ),
        (
            "cluster: c, ",
            "cluster: d, ",
            "config: has no cluster \"d\" among clusters",
        ),
        (
            "token: secret-token",
            "exec: { command: aws }",
            "config: names no token and no certificate for its user (programs are not run for one): write tokenFile",
        ),
        (
            "server: '",
            "insecure-skip-tls-verify: true, server: '",
            "config: says insecure-skip-tls-verify: the API server's certificate is always checked",
        ),
        (
            "server: '",
            "certificate-authority-data: '*', server: '",
            "config: holds what is not base64 in certificate-authority",
        ),
        (
            "server: 'https://127.0.0.1:6443'",
            "ca: x",
            "config: names no server",
        ),
    ] {
        assert!(CONFIG.contains(old));
        let said = of(&CONFIG.replace(old, new)).err();
        assert_eq!(said.as_deref(), Some(says));
    }
    let said = of("[").err().expect("a fault");
    assert_eq!(said, "config: is no kubeconfig: it is not YAML");
}
