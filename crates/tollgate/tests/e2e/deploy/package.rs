//! The scripts of the Debian package, in a root of their own: what they would change is told by programs that stand in.
//!
//! Not here: `dpkg`, `systemd` and the users of a real system (`cargo xtask dist try`).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// The version that was configured before.
const OLDER: &str = "0.0.9";
const CONFIG: &str = "etc/tollgate/tollgate.yaml";
const PERSON: &str = "tollgate:x:1000:1000::/nowhere:/bin/bash\n";
const SERVICE: &str = "tollgate:x:998:997::/var/lib/tollgate:/usr/sbin/nologin\n";

/// Each says what it was asked, then does this.
const STAND_INS: &[(&str, &str)] = &[
    ("getent", r#"grep "^$2:" "$DPKG_ROOT/etc/$1" || exit 2"#),
    (
        "groupadd",
        r#"echo tollgate:x:998: >> "$DPKG_ROOT/etc/group""#,
    ),
    (
        "useradd",
        r#"grep -q ^tollgate: "$DPKG_ROOT/etc/group" && echo tollgate:x:998:998:: >> "$DPKG_ROOT/etc/passwd""#,
    ),
    ("install", r#"for dir; do :; done; mkdir -p "$dir""#),
    ("chown", r#"[ -e "$2" ]"#),
    ("chmod", r#"[ -e "$2" ]"#),
    (
        "systemctl",
        r#"[ "$1" != show ] || cat "$DPKG_ROOT/main-pid""#,
    ),
    (
        "setpriv",
        r#"while [ "${1#--}" != "$1" ]; do shift; done; exec "$@""#,
    ),
];

/// A root with a configuration, users and groups, and the package's program.
struct Machine {
    dir: TempDir,
}

impl Machine {
    fn new(passwd: &str, group: &str) -> Self {
        let machine = Self {
            dir: tempfile::tempdir().expect("a temporary directory"),
        };
        for (name, does) in STAND_INS {
            let text = format!("#!/bin/sh\necho \"{name} $*\" >> \"$DPKG_ROOT/asked\"\n{does}\n");
            machine.program(&format!("bin/{name}"), &text);
        }
        machine.write("etc/passwd", passwd);
        machine.write("etc/group", group);
        machine.write(CONFIG, "yours\n");
        machine
    }

    /// One whose service runs as process 77, with groups and a key that a drop-in gives it.
    fn serving() -> Self {
        let machine = Self::new(SERVICE, "tollgate:x:997:\n");
        for dir in ["run/systemd/system", "var/lib/tollgate"] {
            fs::create_dir_all(machine.path(dir)).expect("a directory");
        }
        machine.write("main-pid", "77\n");
        machine.write(
            "proc/77/status",
            "Name:\ttollgate\nUid:\t998\t998\t998\t998\nGid:\t997\t997\t997\t997\nGroups:\t42 997 \n",
        );
        machine.write("proc/77/environ", "KEY=a 'key'\0OTHER=\0");
        // The new program: it takes a configuration of the word `good`.
        machine.program(
            "usr/bin/tollgate",
            "#!/bin/sh\n[ \"$KEY\" = \"a 'key'\" ] || { echo no key >&2; exit 1; }\n\
             [ \"$1 $2\" = 'check -c' ] && grep -q good \"$3\" && exit\necho 'line 1: no such word' >&2\nexit 1\n",
        );
        machine
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }

    fn program(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).expect("a mode");
    }

    /// Runs a script as dpkg does; its exit code and all that it says.
    fn run(&self, script: &str, args: &[&str]) -> (Option<i32>, String) {
        let script = Path::new(super::DEPLOY).join("debian").join(script);
        let ended = Command::new("sh")
            .arg(script)
            .args(args)
            .env("DPKG_ROOT", self.dir.path())
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", self.path("bin").display()),
            )
            .output()
            .expect("a shell");
        let said = [ended.stdout, ended.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        (ended.status.code(), said)
    }

    fn configure(&self, older: &str) -> (Option<i32>, String) {
        self.run("postinst", &["configure", older])
    }

    /// What the programs were asked that change something, without this root's name.
    fn changes(&self) -> Vec<String> {
        let asked = fs::read_to_string(self.path("asked")).unwrap_or_default();
        let asked = asked.replace(&self.dir.path().display().to_string(), "");
        let is_change = |line: &&str| !line.starts_with("getent") && !line.contains(" show ");
        asked.lines().filter(is_change).map(str::to_owned).collect()
    }
}

#[test]
fn owners_and_modes_are_set_by_the_first_configuration_alone() {
    let machine = Machine::new("", "");
    let (code, said) = machine.configure("");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("edit /etc/tollgate/tollgate.yaml"), "{said}");
    let changes = machine.changes();
    for wanted in [
        "install -d -m 0750 -o root -g tollgate /etc/tollgate/secrets",
        "install -d -m 0750 -o tollgate -g tollgate /var/lib/tollgate",
        "chown root:tollgate /etc/tollgate/tollgate.yaml",
        "chmod 0640 /etc/tollgate/tollgate.yaml",
    ] {
        assert!(changes.iter().any(|change| change == wanted), "{changes:?}");
    }
    // Twice is as good as once.
    for _ in 0..2 {
        let (code, said) = machine.configure(OLDER);
        assert_eq!((code, said.as_str()), (Some(0), ""));
        assert_eq!(machine.changes(), changes, "nothing is changed again");
    }
    fs::remove_dir(machine.path("var/log/tollgate")).expect("it is there");
    assert_eq!(machine.configure(OLDER).0, Some(0));
    let added = machine.changes().split_off(changes.len());
    assert_eq!(
        added,
        ["install -d -m 0750 -o tollgate -g tollgate /var/log/tollgate"],
        "what is missing is made"
    );
}

#[test]
fn a_configuration_that_is_gone_or_lies_elsewhere_is_left_alone() {
    let gone = Machine::new(SERVICE, "tollgate:x:997:\n");
    let linked = Machine::new(SERVICE, "tollgate:x:997:\n");
    for machine in [&gone, &linked] {
        fs::remove_file(machine.path(CONFIG)).expect("it is there");
    }
    linked.write("srv/shared.yaml", "of others\n");
    symlink(linked.path("srv/shared.yaml"), linked.path(CONFIG)).expect("a link");
    for machine in [&gone, &linked] {
        for older in ["", OLDER] {
            let (code, said) = machine.configure(older);
            assert_eq!(code, Some(0), "{said}");
        }
        let changes = machine.changes();
        let is_of_file = |change: &String| change.starts_with("ch");
        assert!(!changes.iter().any(is_of_file), "{changes:?}");
    }
}

#[test]
fn a_group_or_a_user_that_is_there_is_taken() {
    let useradd = "useradd --system --gid tollgate --home-dir /var/lib/tollgate --no-create-home --shell \
                   /usr/sbin/nologin tollgate";
    for (passwd, group, wanted) in [
        ("", "", &["groupadd --system tollgate", useradd][..]),
        ("", "tollgate:x:997:\n", &[useradd]),
        // Of another group.
        (
            "tollgate:x:998:100::/srv:/bin/false\n",
            "",
            &["groupadd --system tollgate"],
        ),
        (SERVICE, "tollgate:x:997:\n", &[]),
        // Whom an older version took is not turned away.
        (PERSON, "tollgate:x:1000:\n", &[]),
    ] {
        let machine = Machine::new(passwd, group);
        let older = if passwd == PERSON { OLDER } else { "" };
        let (code, said) = machine.configure(older);
        assert_eq!(code, Some(0), "{passwd:?} {group:?}: {said}");
        let changes = machine.changes();
        let adds: Vec<&String> = changes
            .iter()
            .filter(|change| change.contains("add --system"))
            .collect();
        assert_eq!(adds, wanted, "{passwd:?} {group:?}");
    }
}

#[test]
fn a_persons_account_of_that_name_is_refused_before_anything_is_made() {
    let machine = Machine::new(PERSON, "tollgate:x:1000:\n");
    let (code, said) = machine.configure("");
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("uid 1000") && said.contains("then: dpkg --configure tollgate"),
        "{said}"
    );
    assert_eq!(machine.changes(), [""; 0]);
}

#[test]
fn an_upgrade_restarts_a_gate_only_where_the_new_program_takes_the_configuration() {
    let machine = Machine::serving();
    let restarts = |machine: &Machine| {
        let changes = machine.changes();
        let is_restart = |change: &&String| change.contains("restart");
        changes.iter().filter(is_restart).count()
    };
    let (code, said) = machine.configure(OLDER);
    assert_eq!((code, restarts(&machine)), (Some(0), 0), "{said}");
    assert!(
        said.contains("line 1: no such word") && said.contains("then: systemctl restart tollgate"),
        "{said}"
    );
    // With the user, the groups and the environment of the process that runs.
    let changes = machine.changes();
    let asks = "setpriv --reuid=998 --regid=997 --groups=42,997 ";
    assert!(
        changes.iter().any(|change| change.starts_with(asks)),
        "{changes:?}"
    );

    machine.write(CONFIG, "good\n");
    let (code, said) = machine.configure(OLDER);
    assert_eq!((code, said.as_str(), restarts(&machine)), (Some(0), "", 1));
    // One that does not run, or is about to be started again, has no process to ask as.
    for main in ["0\n", ""] {
        let machine = Machine::serving();
        machine.write("main-pid", main);
        let (code, said) = machine.configure(OLDER);
        assert_eq!((code, said.as_str(), restarts(&machine)), (Some(0), "", 1));
    }
    let first = Machine::serving();
    assert_eq!((first.configure("").0, restarts(&first)), (Some(0), 0));
}

#[test]
fn purge_names_each_directory_that_it_keeps() {
    let machine = Machine::new("", "");
    for dir in [
        "etc/tollgate/secrets",
        "var/lib/tollgate",
        "var/log/tollgate",
    ] {
        fs::create_dir_all(machine.path(dir)).expect("a directory");
    }
    // dpkg removes what it brought before it calls the script.
    fs::remove_file(machine.path(CONFIG)).expect("it is there");
    for file in ["etc/tollgate/secrets/openai", "var/log/tollgate/access.log"] {
        machine.write(file, "yours\n");
    }
    let (code, said) = machine.run("postrm", &["purge"]);
    let kept = |dir: &str| format!("tollgate: {dir} is kept, with what is in it\n");
    let wanted = [
        "/etc/tollgate/secrets",
        "/etc/tollgate",
        "/var/log/tollgate",
    ]
    .map(kept);
    assert_eq!((code, said), (Some(0), wanted.concat()));
    assert!(!machine.path("var/lib/tollgate").exists(), "it was empty");
    for file in ["etc/tollgate/secrets/openai", "var/log/tollgate/access.log"] {
        fs::remove_file(machine.path(file)).expect("it is kept");
    }
    assert_eq!(machine.run("postrm", &["purge"]), (Some(0), String::new()));
    assert!(!machine.path("etc/tollgate").exists(), "nothing is left");
}
