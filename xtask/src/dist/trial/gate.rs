//! A gate, or a demo, that runs in a root made for it, and calls of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{holds, succeed};
use crate::free_address::free_address;

const WITHIN: Duration = Duration::from_secs(20);

/// A gate that takes calls. Killed when dropped.
pub(super) struct Gate {
    child: Child,
    data: SocketAddr,
}

impl Gate {
    /// Starts what a command says, and waits until it listens.
    pub(super) fn start(mut command: Command, data: SocketAddr) -> Result<Self, String> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|cause| format!("{command:?}: {cause}"))?;
        let mut gate = Self { child, data };
        let began = Instant::now();
        while TcpStream::connect(data).is_err() {
            if let Some(ended) = gate.child.try_wait().map_err(|cause| cause.to_string())? {
                let mut says = String::new();
                if let Some(mut stderr) = gate.child.stderr.take() {
                    drop(stderr.read_to_string(&mut says));
                }
                return Err(format!("{command:?} ended ({ended}): {says}"));
            }
            holds(began.elapsed() < WITHIN, "the gate listens")?;
            thread::sleep(Duration::from_millis(5));
        }
        // Nobody reads on: what it says is not to stop it.
        drop(gate.child.stderr.take().map(|mut stderr| {
            thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()))
        }));
        Ok(gate)
    }

    /// Starts a demo by the program that `command` runs, and has it answer a call.
    pub(super) fn demo(mut command: Command) -> Result<Self, String> {
        let data = free_address()?;
        command.args(["demo", "--listen", &data.to_string()]);
        for part in ["--admin", "--on-prem", "--frontier"] {
            command.args([part, "127.0.0.1:0"]);
        }
        let gate = Self::start(command, data)?;
        gate.call("x-workload-app: swe-rebench-ide", "gpt-oss-120b")?;
        Ok(gate)
    }

    /// A call that is answered by an upstream; `who` is the header that says who calls.
    pub(super) fn call(&self, who: &str, model: &str) -> Result<(), String> {
        let body =
            format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"Hi"}}]}}"#);
        let call = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n{who}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let asked = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(self.data)?;
            stream.set_read_timeout(Some(WITHIN))?;
            stream.write_all(call.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = asked().map_err(|cause| format!("a call: {cause}"))?;
        let is_answered = answer.starts_with("HTTP/1.1 200") && answer.contains("\"choices\"");
        holds(is_answered, &format!("a call is answered, not {answer}"))
    }

    /// Ends it as systemd and container runtimes do.
    pub(super) fn end(mut self) -> Result<(), String> {
        succeed(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        let ended = self.child.wait().map_err(|cause| cause.to_string())?;
        holds(ended.success(), &format!("the gate ends well, not {ended}"))
    }

    /// The same where another program started it in a group of its own, as a terminal's Ctrl-C does: that one ends as it likes, and what counts
    /// is that the gate is gone.
    pub(super) fn end_group(mut self) -> Result<(), String> {
        let group = format!("-{}", self.child.id());
        succeed(Command::new("kill").args(["-TERM", "--", &group]))?;
        self.child.wait().map_err(|cause| cause.to_string())?;
        let began = Instant::now();
        while TcpStream::connect(self.data).is_ok() {
            holds(began.elapsed() < WITHIN, "the gate ends")?;
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
