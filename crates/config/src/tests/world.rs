//! A world of files and variables in memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Faults, Loaded, Sources, load};

#[derive(Default)]
pub(crate) struct World {
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
    pub(crate) vars: BTreeMap<String, String>,
}

pub(crate) const DOCUMENT: &str = "/etc/tollgate/tollgate.yaml";

impl World {
    /// A world whose document is `text`.
    pub(crate) fn with(text: &str) -> Self {
        let mut world = Self::default();
        world.put("tollgate.yaml", text);
        world
    }

    /// A file beside the document.
    pub(crate) fn put(&mut self, name: &str, content: impl AsRef<[u8]>) -> &mut Self {
        let path = Path::new("/etc/tollgate").join(name);
        self.files.insert(path, content.as_ref().to_vec());
        self
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.vars.insert(name.into(), value.into());
        self
    }

    pub(crate) fn load(&self) -> Result<Loaded, Faults> {
        load(Path::new(DOCUMENT), self)
    }
}

impl Sources for World {
    fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        match self.files.get(path) {
            Some(content) if content.len() > bytes_max => Err(io::ErrorKind::FileTooLarge.into()),
            Some(content) => Ok(content.clone()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn var(&self, name: &str) -> Option<String> {
        self.vars.get(name).cloned()
    }
}
