//! Where an API server is, and who the gate is to it: as a pod of its cluster, or as a kubeconfig says.
//!
//! Not here: asking it (`kubernetes`).

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use callout::{ApiServer, Bounds, Client, SecretSource, Tls, Url};
use config::{Node, Scalar, Value};
use policy::secret::Secret;

/// What a pod finds of its service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The server, how it is asked, and the namespace of whoever asks.
pub(super) struct Place {
    pub(super) server: ApiServer,
    pub(super) client: Client,
    pub(super) namespace: String,
}

/// Namespace and name, as they are written together.
pub(super) fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("write NAMESPACE/NAME".to_owned()),
    }
}

/// Who this gate is among its replicas.
pub(super) fn identity() -> String {
    let name = std::env::var("HOSTNAME").unwrap_or_else(|_| "tollgate".to_owned());
    format!(
        "{name}_{:016x}",
        RandomState::new().hash_one(std::process::id())
    )
}

/// As a pod of the cluster finds it.
pub(super) fn of_pod() -> Result<Place, String> {
    let var = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let address = var("KUBERNETES_SERVICE_HOST").zip(var("KUBERNETES_SERVICE_PORT"));
    let Some((host, port)) = address else {
        return Err(
            "this is no pod of a cluster (KUBERNETES_SERVICE_HOST is not set): name a --kubeconfig"
                .to_owned(),
        );
    };
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host
    };
    let directory = Path::new(ACCOUNT);
    let roots = read(&directory.join("ca.crt"))?;
    let namespace = read(&directory.join("namespace"));
    let namespace = namespace
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let url = format!("https://{host}:{port}");
    let token = SecretSource::file(directory.join("token"));
    let namespace = namespace.map(|text| text.trim().to_owned());
    place(&url, Some(&roots), None, token, namespace)
}

/// As a kubeconfig says: its current context, with a token or a certificate. No program is run for a credential.
pub(super) fn of_file(file: &Path) -> Result<Place, String> {
    let says = |what: &str| format!("{}: {what}", file.display());
    let text = String::from_utf8(read(file)?).map_err(|_| says("is not UTF-8"))?;
    let nodes = config::parse_all(&text).map_err(|_| says("is no kubeconfig: it is not YAML"))?;
    let root = nodes.first().ok_or_else(|| says("is empty"))?;
    let entry = |list: &str, name: &str, of: &str| {
        let missing = || says(&format!("has no {of} {name:?} among {list}"));
        let Some(Value::List(items)) = member(root, list).map(|node| &node.value) else {
            return Err(missing());
        };
        let mut items = items.iter();
        let found = items.find(|item| raw(item, "name") == Some(name));
        found.and_then(|item| member(item, of)).ok_or_else(missing)
    };
    let context = raw(root, "current-context").ok_or_else(|| says("has no current-context"))?;
    let context = entry("contexts", context, "context")?;
    let part = |name: &str| raw(context, name).unwrap_or_default();
    let cluster = entry("clusters", part("cluster"), "cluster")?;
    let user = entry("users", part("user"), "user")?;
    if raw(cluster, "insecure-skip-tls-verify") == Some("true") {
        return Err(says(
            "says insecure-skip-tls-verify: the API server's certificate is always checked",
        ));
    }
    let directory = file.parent().unwrap_or(Path::new(""));
    // What stands in it, or in a file that it names.
    let content = |of: &Node, data: &str, named: &str| -> Result<Option<Vec<u8>>, String> {
        if let Some(data) = raw(of, data) {
            let decoded = STANDARD.decode(data);
            return decoded
                .map(Some)
                .map_err(|_| says(&format!("holds what is not base64 in {named}")));
        }
        raw(of, named)
            .map(|path| read(&directory.join(path)))
            .transpose()
    };
    let roots = content(
        cluster,
        "certificate-authority-data",
        "certificate-authority",
    )?;
    let certificate = content(user, "client-certificate-data", "client-certificate")?;
    let key = content(user, "client-key-data", "client-key")?;
    let identity = certificate.as_deref().zip(key.as_deref());
    let token = match (raw(user, "token"), raw(user, "tokenFile")) {
        (_, Some(path)) => Some(SecretSource::file(directory.join(path))),
        (Some(token), None) => Some(SecretSource::fixed(Secret::new(token.as_bytes().to_vec()))),
        (None, None) => None,
    };
    let Some(token) = token.or_else(|| identity.map(|_| SecretSource::none())) else {
        let hint = "names no token and no certificate for its user (programs are not run for one): \
                    write tokenFile";
        return Err(says(hint));
    };
    let server = raw(cluster, "server").ok_or_else(|| says("names no server"))?;
    let namespace = raw(context, "namespace").map(str::to_owned);
    place(server, roots.as_deref(), identity, token, namespace).map_err(|why| says(&why))
}

fn place(
    url: &str,
    roots: Option<&[u8]>,
    identity: Option<(&[u8], &[u8])>,
    token: SecretSource,
    namespace: Option<String>,
) -> Result<Place, String> {
    let url = Url::parse(url).map_err(|fault| format!("the API server's address: {fault}"))?;
    let tls = proxy::tls::client(roots, identity, &[]).map_err(|fault| fault.to_string())?;
    Ok(Place {
        server: ApiServer { url, token },
        client: Client::new(&Tls::of(tls), Bounds::default()),
        namespace: namespace.unwrap_or_else(|| "default".to_owned()),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", PathBuf::from(path).display()))
}

fn member<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let Value::Map(entries) = &node.value else {
        return None;
    };
    let found = entries.iter().find(|entry| entry.key == name);
    found.map(|entry| &entry.node)
}

fn raw<'n>(node: &'n Node, name: &str) -> Option<&'n str> {
    match &member(node, name)?.value {
        Value::Scalar(Scalar { raw, .. }) => Some(raw.as_str()).filter(|raw| !raw.is_empty()),
        Value::List(_) | Value::Map(_) => None,
    }
}

#[cfg(test)]
mod tests;
