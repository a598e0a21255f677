//! A document from its bytes on: read whole, or refused whole.
//!
//! Not here: values in it (`node`), what becomes of them (`lower`), documents made of variables (`environment`).

use std::io;
use std::path::Path;

use crate::catalogue::{BUILT_IN, BUILT_IN_NAME, CatalogueModel};
use crate::fault::{Fault, Faults};
use crate::lower::{self, Loaded};
use crate::node::{self, Node, Value};
use crate::servers::{self, EditorServers};
use crate::sources::Sources;

/// Largest document, bytes.
const DOCUMENT_BYTES_MAX: usize = 4 << 20;

/// Reads the document at `path` and lowers it.
///
/// # Errors
/// [`Faults`], all that can be found at once.
pub fn load(path: &Path, sources: &dyn Sources) -> Result<Loaded, Faults> {
    load_with(path, None, sources)
}

/// Likewise, with servers of tools beside those of the document.
///
/// # Errors
/// [`Faults`], all that can be found at once.
pub fn load_with(
    path: &Path,
    servers: Option<&EditorServers>,
    sources: &dyn Sources,
) -> Result<Loaded, Faults> {
    let bytes = bytes_or(path, sources, "name another with -c FILE")?;
    parse_with(path, &bytes, servers, sources)
}

/// The models of a file's catalogue, or of the one that is built in; by provider, in the order written.
///
/// # Errors
/// [`Faults`], all that can be found at once.
pub fn catalogue(
    file: Option<&Path>,
    sources: &dyn Sources,
) -> Result<Vec<CatalogueModel>, Faults> {
    let (path, bytes) = match file {
        Some(path) => (path, bytes_of(path, sources)?),
        None => (Path::new(BUILT_IN_NAME), BUILT_IN.into()),
    };
    lower::catalogue(path, &bytes, sources)
}

/// What a file holds, where it is none too large.
pub(crate) fn bytes_of(path: &Path, sources: &dyn Sources) -> Result<Vec<u8>, Faults> {
    bytes_or(path, sources, "")
}

/// The same, with what to do where it cannot be read.
fn bytes_or(path: &Path, sources: &dyn Sources, hint: &str) -> Result<Vec<u8>, Faults> {
    match sources.read(path, DOCUMENT_BYTES_MAX) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let says = "the file is larger than 4 MiB, and no more is read".to_owned();
            Err(refused(path, vec![whole(says, "")]))
        }
        Err(error) => {
            let says = format!("cannot read the file: {}", lower::reason(&error));
            let hint = match path.as_os_str() == "-" {
                true => "the standard input is not read: write it into a file",
                false => hint,
            };
            Err(refused(path, vec![whole(says, hint)]))
        }
    }
}

/// Lowers a document that is already in memory; `path` is what its relative paths start from and
/// what faults are reported against.
///
/// # Errors
/// [`Faults`], all that can be found at once.
pub fn parse_document(path: &Path, bytes: &[u8], sources: &dyn Sources) -> Result<Loaded, Faults> {
    parse_with(path, bytes, None, sources)
}

pub(crate) fn parse_with(
    path: &Path,
    bytes: &[u8],
    servers: Option<&EditorServers>,
    sources: &dyn Sources,
) -> Result<Loaded, Faults> {
    let root = tree_of(path, bytes)?;
    if let Some(fault) = foreign(&root) {
        return Err(refused(path, vec![fault]));
    }
    match servers {
        Some(servers) => {
            let own = own_tree(servers, sources)?;
            servers::lower_with(path, root, own, sources, servers)
        }
        None => lower::lower(path, root, sources),
    }
}

/// The tree of servers in the form of editors.
fn own_tree(servers: &EditorServers, sources: &dyn Sources) -> Result<Node, Faults> {
    let mut bytes = match &servers.text {
        Some(text) => text.clone().into_bytes(),
        None => bytes_of(&servers.file, sources).map_err(|faults| of_servers(faults, servers))?,
    };
    // JSON is YAML but for tabs, which stand nowhere within its texts.
    for byte in bytes.iter_mut().filter(|byte| **byte == b'\t') {
        *byte = b' ';
    }
    tree_of(&servers.file, &bytes).map_err(|faults| of_servers(faults, servers))
}

/// Faults of the servers' own text, which is no part of the document.
fn of_servers(mut faults: Faults, servers: &EditorServers) -> Faults {
    for fault in &mut faults.faults {
        fault.file = Some(servers.file.clone());
        fault.hint = "write {\"mcpServers\": {\"NAME\": {\"url\": \"…\"}}}".to_owned();
        fault.says = fault.says.replace("not valid YAML", "not valid JSON");
    }
    faults
}

/// The tree of a document's text.
pub(crate) fn tree_of(path: &Path, bytes: &[u8]) -> Result<Node, Faults> {
    if bytes.len() > DOCUMENT_BYTES_MAX {
        let says = format!("the file is {} bytes; at most 4 MiB are read", bytes.len());
        return Err(refused(path, vec![whole(says, "")]));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        let fault = Fault {
            line: Some(line),
            ..whole("is not UTF-8".into(), "save it as UTF-8")
        };
        refused(path, vec![fault])
    })?;
    node::parse(text).map_err(|faults| refused(path, faults))
}

/// A document of another gateway: none of its fields is known here, which says less than whose it is.
fn foreign(root: &Node) -> Option<Fault> {
    let Value::Map(entries) = &root.value else {
        return None;
    };
    let entry = |name: &str| entries.iter().find(|entry| entry.key == name);
    let list = entry("model_list")?;
    let is_own = entry("backends").is_some() || entry("routes").is_some();
    (!is_own).then(|| Fault {
        file: None,
        path: "model_list".into(),
        line: Some(list.line),
        says: "this is a configuration of LiteLLM's".into(),
        hint: "`tollgate import litellm FILE` makes one of the gate's of it, and docs/coming-from.md#from-litellm says what it \
               cannot carry"
            .into(),
    })
}

fn whole(says: String, hint: &str) -> Fault {
    Fault {
        file: None,
        path: String::new(),
        line: None,
        says,
        hint: hint.into(),
    }
}

fn refused(path: &Path, faults: Vec<Fault>) -> Faults {
    Faults {
        file: path.to_owned(),
        faults,
        warnings: Vec::new(),
        watched: vec![path.to_owned()],
        key_files: Vec::new(),
    }
}
