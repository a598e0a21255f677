//! One gate under callgrind, from its start to its end.
//!
//! Invariant: the process is ended, whatever happens; nothing but loopback is used.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::scene::{FILES, Scene, Wires};
use crate::cargo::{metadata, target_dir};
use crate::free_address::free_address;

/// Longest wait for one read, and for the gate to begin or end: callgrind makes it some 50 times slower.
const PATIENCE: Duration = Duration::from_secs(120);

/// A function that the worker's thread alone runs.
const OF_THE_WORKER: &str = "proxy::acceptor::run";

/// Instructions of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instructions {
    /// Of all its threads.
    pub(super) all: u64,
    /// Of the thread that serves.
    pub(super) worker: u64,
}

/// Instructions of the gate when it has served so many exchanges.
pub(super) fn instructions(
    binary: &Path,
    scene: &Scene,
    exchanges: u32,
) -> Result<Instructions, String> {
    let dir = dir()?;
    std::fs::create_dir_all(&dir).map_err(|cause| format!("{}: {cause}", dir.display()))?;
    let profile = dir.join(format!("{}.out", scene.name));
    for (_, earlier) in profiles(&profile)? {
        std::fs::remove_file(&earlier)
            .map_err(|cause| format!("{}: {cause}", earlier.display()))?;
    }
    let mut callgrind = Command::new("valgrind");
    callgrind
        .args(["--tool=callgrind", "--quiet", "--separate-threads=yes"])
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(binary);
    run(callgrind, &dir.join(scene.name), scene, exchanges)?;
    let mut counted = Instructions { all: 0, worker: 0 };
    for (text, of) in profiles(&profile)? {
        let total = total(&text).ok_or_else(|| format!("{} holds no total", of.display()))?;
        counted.all += total;
        if text.contains(OF_THE_WORKER) {
            counted.worker += total;
        }
    }
    if counted.worker == 0 {
        return Err(format!("{}: no thread runs {OF_THE_WORKER}", scene.name));
    }
    Ok(counted)
}

/// Where profiles are.
pub(super) fn dir() -> Result<PathBuf, String> {
    Ok(target_dir(&metadata()?)?.join("instructions"))
}

/// What callgrind wrote of each thread: `<scene>.out-<thread>`.
fn profiles(profile: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let fault = |cause: io::Error| format!("{}: {cause}", profile.display());
    let (Some(dir), Some(name)) = (profile.parent(), profile.file_name()) else {
        return Ok(Vec::new());
    };
    let start = format!("{}-", name.to_string_lossy());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(&start) {
            found.push((std::fs::read_to_string(&path).map_err(fault)?, path));
        }
    }
    Ok(found)
}

/// Starts a gate by this command, in this folder, has it serve so many exchanges, and ends it.
pub(super) fn run(
    mut gate: Command,
    dir: &Path,
    scene: &Scene,
    exchanges: u32,
) -> Result<(), String> {
    anew(dir).map_err(|cause| format!("{}: {cause}", dir.display()))?;
    let upstream = TcpListener::bind("127.0.0.1:0").map_err(|cause| cause.to_string())?;
    let (data, admin) = (free_address()?, free_address()?);
    let config = scene
        .config
        .replace("{dir}", &dir.display().to_string())
        .replace("{upstream}", &local(&upstream)?.to_string());
    let config =
        format!("listen: {{ data: \"{data}\", admin: \"{admin}\" }}\nworkers: 1\n{config}");
    let file = dir.join("tollgate.yaml");
    for (name, text) in FILES {
        let written = private(&dir.join(name)).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|cause| format!("{name}: {cause}"))?;
    }
    std::fs::write(&file, config).map_err(|cause| cause.to_string())?;
    let said = dir.join(format!("{}.log", scene.name));
    let log = std::fs::File::create(&said).map_err(|cause| cause.to_string())?;
    let child = gate
        .args(["run", "--config"])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|cause| format!("{gate:?} did not start: {cause}"))?;
    let served = serve(&mut Gate(child), scene, exchanges, data, upstream);
    served.map_err(|says| {
        let said = std::fs::read_to_string(&said).unwrap_or_default();
        format!("{}: {says}\nthe gate said:\n{said}", scene.name)
    })
}

/// The folder, without the ledger of a run before.
fn anew(dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.starts_with("usage.db")) {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// A file that its owner alone can read.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

fn serve(
    gate: &mut Gate,
    scene: &Scene,
    exchanges: u32,
    data: SocketAddr,
    upstream: TcpListener,
) -> Result<(), String> {
    let client = gate.connect(data)?;
    let mut wires = Wires {
        client: patient(client)?,
        upstream: None,
        dialled: Box::new(move || dialled(&upstream)),
        calls: 0,
    };
    for _ in 0..exchanges {
        (scene.exchange)(&mut wires)?;
    }
    drop(wires);
    gate.end()
}

/// The connection that the gate opens. One that has crashed opens none.
fn dialled(upstream: &TcpListener) -> Result<TcpStream, String> {
    let begun = Instant::now();
    upstream
        .set_nonblocking(true)
        .map_err(|cause| cause.to_string())?;
    loop {
        match upstream.accept() {
            Ok((stream, _)) => {
                let blocking = stream.set_nonblocking(false);
                return patient(
                    blocking
                        .map(|()| stream)
                        .map_err(|cause| cause.to_string())?,
                );
            }
            Err(cause) if cause.kind() != io::ErrorKind::WouldBlock => {
                return Err(cause.to_string());
            }
            Err(_) if begun.elapsed() > PATIENCE => {
                return Err("the gate does not call its upstream".into());
            }
            Err(_) => sleep(Duration::from_millis(1)),
        }
    }
}

/// The total that callgrind wrote of one thread.
fn total(profile: &str) -> Option<u64> {
    let total = profile.lines().find_map(|line| {
        line.strip_prefix("summary: ")
            .or_else(|| line.strip_prefix("totals: "))
    })?;
    total.trim().parse().ok()
}

/// The process, killed when dropped.
struct Gate(Child);

impl Gate {
    fn connect(&mut self, to: SocketAddr) -> Result<TcpStream, String> {
        let begun = Instant::now();
        loop {
            match TcpStream::connect(to) {
                Ok(stream) => return Ok(stream),
                Err(_)
                    if self.0.try_wait().is_ok_and(|ended| ended.is_none())
                        && begun.elapsed() < PATIENCE =>
                {
                    sleep(Duration::from_millis(50));
                }
                Err(cause) => return Err(format!("the gate does not listen: {cause}")),
            }
        }
    }

    fn end(&mut self) -> Result<(), String> {
        let id = self.0.id().to_string();
        let asked = Command::new("kill").args(["-INT", &id]).status();
        asked.map_err(|cause| format!("kill: {cause}"))?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Ok(Some(status)) = self.0.try_wait() {
                return if status.success() {
                    Ok(())
                } else {
                    Err(format!("it ended with {status}"))
                };
            }
            sleep(Duration::from_millis(20));
        }
        Err("it does not end".into())
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }
}

fn patient(stream: TcpStream) -> Result<TcpStream, String> {
    let set = || -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))
    };
    set().map_err(|cause| cause.to_string())?;
    Ok(stream)
}

fn local(listener: &TcpListener) -> Result<SocketAddr, String> {
    listener.local_addr().map_err(|cause| cause.to_string())
}
