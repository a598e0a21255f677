//! `deploy/compose/stack.sh` with programs that stand in for engine, gate and Prometheus: each takes its ports by a file, and
//! `curl` reaches a port where its file is.
//!
//! Not here: the real programs (the commands of deploy/compose/README.md are run by `cargo xtask book`).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// Another's answer on the gate's port comes when the gate that fails has failed.
const CURL: &str = r#"#!/bin/sh
for url; do :; done
port=${url#http://127.0.0.1:}
port=${port%%/*}
[ -e "$STANDS/on-$port" ] || exit 7
if [ "$port" = 1976 ] && [ -e "$STANDS/tollgate.fails" ]; then
  until [ -e "$STANDS/tollgate.pid" ]; do sleep 0.01; done
  read -r pid < "$STANDS/tollgate.pid"
  while [ -e "/proc/$pid/exe" ]; do sleep 0.01; done
fi
"#;

/// A name and what it listens on. One that is told to fail says why and ends.
const PROGRAMS: &[(&str, &str)] = &[
    ("prove", "8000 9400"),
    ("tollgate", "1975 1976"),
    ("prometheus", "9090"),
];

const PROGRAM: &str = r#"#!/bin/sh
echo $$ > "$STANDS/NAME.new"
mv "$STANDS/NAME.new" "$STANDS/NAME.pid"
[ ! -e "$STANDS/NAME.fails" ] || { echo "NAME cannot bind" >&2; exit 1; }
echo "$STACK_LEDGER" > "$STANDS/NAME.ledger"
for port in PORTS; do : > "$STANDS/on-$port"; done
exec sleep 3600
"#;

struct Stack {
    dir: TempDir,
}

impl Stack {
    fn new() -> Self {
        let stack = Self {
            dir: tempfile::tempdir().expect("a temporary directory"),
        };
        fs::create_dir(stack.path("bin")).expect("a directory");
        let program = |name: &str, text: &str| {
            let path = stack.path("bin").join(name);
            fs::write(&path, text).expect("a file");
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
        };
        program("curl", CURL);
        for (name, ports) in PROGRAMS {
            program(name, &PROGRAM.replace("NAME", name).replace("PORTS", ports));
        }
        stack
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn mark(&self, name: &str) {
        fs::write(self.path(name), "").expect("a file");
    }

    /// Starts it in the directory of the stand-ins, with this argument and its output in files.
    fn start(&self, argument: &str) -> Child {
        let file = |name: &str| fs::File::create(self.path(name)).expect("a file");
        // Whoever runs these tests may ignore signals, which a shell passes on.
        Command::new("env")
            .args(["--default-signal=HUP,INT,QUIT,TERM", "sh"])
            .arg(format!("{}/compose/stack.sh", super::DEPLOY))
            .arg(argument)
            .current_dir(self.dir.path())
            .env_clear()
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", self.path("bin").display()),
            )
            .env("STANDS", self.dir.path())
            .stdin(Stdio::null())
            .stdout(file("out"))
            .stderr(file("err"))
            .spawn()
            .expect("a shell")
    }

    fn said(&self, stream: &str) -> String {
        fs::read_to_string(self.path(stream)).unwrap_or_default()
    }

    /// The processes that were started.
    fn pids(&self) -> Vec<String> {
        let pid = |(name, _): &(&str, &str)| fs::read_to_string(self.path(&format!("{name}.pid")));
        let pids = PROGRAMS.iter().filter_map(|program| pid(program).ok());
        pids.map(|pid| pid.trim().to_owned()).collect()
    }
}

impl Drop for Stack {
    /// What a failed test leaves running; the script ends when they do.
    fn drop(&mut self) {
        for pid in self.pids().iter().filter(|pid| lives(pid)) {
            drop(Command::new("kill").arg(pid).status());
        }
    }
}

/// The exit code of a script that has to end.
fn code(mut stack: Child) -> Option<i32> {
    let status = testing::found("stack.sh ends", || {
        stack.try_wait().expect("the child can be asked")
    });
    status.code()
}

fn lives(pid: &str) -> bool {
    PathBuf::from(format!("/proc/{pid}/exe")).exists()
}

#[test]
fn ctrl_c_and_the_end_of_the_terminal_end_every_process() {
    for (signal, ends_with) in [("HUP", 129), ("QUIT", 131), ("TERM", 143)] {
        let stack = Stack::new();
        let script = stack.start("my-stack");
        testing::eventually("the stack is up", || {
            stack.said("out").contains("Ctrl-C ends everything")
        });
        let pids = stack.pids();
        assert_eq!(pids.len(), PROGRAMS.len());
        assert!(pids.iter().all(|pid| lives(pid)), "{pids:?}");
        let mut kill = Command::new("kill");
        let kill = kill.args([&format!("-{signal}"), &script.id().to_string()]);
        assert!(kill.status().expect("kill").success());
        assert_eq!(code(script), Some(ends_with), "{}", stack.said("err"));
        assert!(!pids.iter().any(|pid| lives(pid)), "{signal}: {pids:?}");
    }
}

#[test]
fn a_port_that_another_program_has_is_named_before_anything_is_started() {
    for port in ["8000", "9400", "1975", "1976", "9090"] {
        let stack = Stack::new();
        stack.mark(&format!("on-{port}"));
        let script = stack.start("my-stack");
        assert_eq!(code(script), Some(1), "{}", stack.said("out"));
        let says = stack.said("err");
        let wanted = format!("stack.sh: port {port} is taken by another program");
        assert!(says.starts_with(&wanted), "{says}");
        assert_eq!(stack.pids(), [""; 0]);
    }
}

/// It answers, but it is not what was started.
#[test]
fn an_answer_of_another_program_does_not_stand_for_one_that_ended() {
    let stack = Stack::new();
    stack.mark("tollgate.fails");
    // The engine's start brings somebody else to the gate's port, after the ports were looked at.
    let engine = PROGRAM.replace("NAME", "prove");
    let engine = engine.replace("PORTS", "8000 9400 1975 1976");
    fs::write(stack.path("bin/prove"), engine).expect("a file");
    let script = stack.start("my-stack");
    let pids = || stack.pids();
    assert_eq!(code(script), Some(1), "{}", stack.said("out"));
    let says = stack.said("err");
    assert!(
        says.starts_with("stack.sh: tollgate has ended; ")
            && says.ends_with("\ntollgate cannot bind\n"),
        "{says}"
    );
    assert!(!pids().iter().any(|pid| lives(pid)), "{:?}", pids());
}

#[test]
fn a_directory_may_be_relative_and_have_any_characters() {
    for name in ["my-stack", "a&b #c 'd\"e$f", "-x"] {
        let stack = Stack::new();
        let script = stack.start(name);
        testing::eventually("the stack is up", || {
            stack.said("out").contains("Ctrl-C ends everything")
        });
        let ledger = stack.said("tollgate.ledger");
        let wanted = stack.dir.path().canonicalize().expect("it is there");
        let wanted = wanted.join(name).join("ledger");
        assert_eq!(ledger.trim_end(), wanted.display().to_string());
        assert!(wanted.is_dir(), "{name}");
        let id = script.id().to_string();
        let killed = Command::new("kill").args(["-TERM", &id]).status();
        assert!(killed.expect("kill").success());
        assert_eq!(code(script), Some(143));
    }
}
