//! Files and environment, for `config` to read from.
//!
//! Not here: watching them (`watch`).

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use config::Sources;
use policy::secret::Secret;
use rustix::fs::OFlags;

/// Largest file that is kept beside a configuration, bytes: more than any that it reads but files of keys.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// The process's file system and environment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World;

impl Sources for World {
    fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        // Opening a pipe would wait for somebody who writes to it.
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking)
            .open(path)?;
        let found = file.metadata()?;
        if found.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !found.is_file() {
            return Err(io::Error::other("it is a pipe or a device, not a file"));
        }
        bounded(file, found.len(), bytes_max)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        std::fs::read_dir(directory)?
            .map(|entry| Ok(entry?.path()))
            .collect()
    }

    fn mode(&self, path: &Path) -> io::Result<u32> {
        use std::os::unix::fs::MetadataExt;
        Ok(std::fs::metadata(path)?.mode() & 0o7777)
    }

    fn var(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// What `from` holds, which says its length first: one that is too long is not begun.
fn bounded(from: impl Read, length: u64, bytes_max: usize) -> io::Result<Vec<u8>> {
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX);
    if length > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    // It may have grown, and files of the kernel say 0.
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        drop(Secret::new(bytes));
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// The files of a configuration as they were when it was read.
#[derive(Debug, Default)]
pub(crate) struct Files(Mutex<HashMap<PathBuf, Secret>>);

/// Reads the world's files, and keeps them.
#[derive(Debug)]
pub(crate) struct Keeping<'f>(pub(crate) &'f Files);

impl Sources for Keeping<'_> {
    fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        let bytes = World.read(path, bytes_max)?;
        if bytes.len() <= KEPT_BYTES_MAX {
            let kept = Secret::new(bytes.clone());
            let mut files = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
            files.insert(path.to_owned(), kept);
        }
        Ok(bytes)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        World.list(directory)
    }

    fn mode(&self, path: &Path) -> io::Result<u32> {
        World.mode(path)
    }

    fn var(&self, name: &str) -> Option<String> {
        World.var(name)
    }
}

/// Reads files as they were kept, but for these and for what was not kept.
#[derive(Debug)]
pub(crate) struct Kept<'f> {
    pub(crate) files: &'f Files,
    pub(crate) anew: Vec<PathBuf>,
}

impl Sources for Kept<'_> {
    fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        let files = self.files.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_anew = self.anew.iter().any(|anew| anew == path);
        match files.get(path).filter(|_| !is_anew) {
            Some(kept) if kept.expose().len() > bytes_max => {
                Err(io::ErrorKind::FileTooLarge.into())
            }
            Some(kept) => Ok(kept.expose().to_vec()),
            None => World.read(path, bytes_max),
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        World.list(directory)
    }

    fn mode(&self, path: &Path) -> io::Result<u32> {
        World.mode(path)
    }

    fn var(&self, name: &str) -> Option<String> {
        World.var(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_600_mb_where_512_mib_may_be_is_refused_before_it_is_read() {
        struct Unread;
        impl Read for Unread {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("it was read"))
            }
        }
        let kind = |length| bounded(Unread, length, 512 << 20).map_err(|error| error.kind());
        assert_eq!(kind(600_000_000), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(kind(1), Err(io::ErrorKind::Other));
        let grown = bounded(&b"12345"[..], 0, 4).map_err(|error| error.kind());
        assert_eq!(grown, Err(io::ErrorKind::FileTooLarge));
    }

    #[test]
    fn a_file_is_read_up_to_a_bound_and_neither_a_pipe_nor_a_device_is_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let [file, pipe, huge] = ["file", "pipe", "huge"].map(|name| dir.path().join(name));
        std::fs::write(&file, "1234").expect("a file");
        let kind = |path: &Path, most| World.read(path, most).map_err(|error| error.kind());
        assert_eq!(kind(&file, 4), Ok(b"1234".to_vec()));
        assert_eq!(kind(&file, 3), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(kind(dir.path(), 4), Err(io::ErrorKind::IsADirectory));
        // Sparse: it would not fit into memory.
        let sparse = std::fs::File::create(&huge).expect("a file");
        sparse.set_len(1 << 42).expect("it is sparse");
        assert_eq!(kind(&huge, 4), Err(io::ErrorKind::FileTooLarge));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .expect("a pipe");
        for path in [&*pipe, Path::new("/dev/zero")] {
            let says = World.read(path, 4).expect_err("it is no file").to_string();
            assert_eq!(says, "it is a pipe or a device, not a file");
        }
    }
}
