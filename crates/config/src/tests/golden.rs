//! `vectors/config/*.txt`: a document and its world in, the snapshot or every fault out.
//!
//! `UPDATE=1` rewrites the last section of each.

use std::path::Path;

use policy::secret::Secret;

use super::rendering::{rendered, warned};
use super::world::{DOCUMENT, World};
use crate::{EditorServers, load_with};

#[test]
fn every_vector_lowers_as_it_says() {
    testing::vectors("config", 10, check);
}

/// The vector with its outcome as it is today.
fn check(text: &str) -> String {
    let mut world = World::default();
    let mut kept = String::new();
    let mut secrets = Vec::new();
    let mut has_servers = false;
    for section in text.split("=== ").skip(1) {
        let (title, body) = section.split_once('\n').unwrap();
        match title.split_once(' ') {
            None if title == "document" => {
                world.put("tollgate.yaml", body);
            }
            None if title == "variables" => {
                for (name, value) in body.lines().filter_map(|l| l.split_once('=')) {
                    world.set(name, value);
                }
            }
            None if title == "servers" => {
                world.put("mcp.json", body);
                has_servers = true;
            }
            Some(("file", name)) => {
                world.put(name, body);
                if name.starts_with("secrets/") && body.trim().len() > 8 {
                    secrets.push(body.trim().to_owned());
                }
            }
            None if title == "snapshot" || title == "faults" => break,
            _ => panic!("unknown section {title:?}"),
        }
        kept.push_str("=== ");
        kept.push_str(section);
    }
    let servers = EditorServers {
        file: "/etc/tollgate/mcp.json".into(),
        text: None,
        secret: Secret::new(b"canary-secret-of-nobody-32-bytes".to_vec()),
    };
    let loaded = load_with(Path::new(DOCUMENT), has_servers.then_some(&servers), &world);
    let outcome = match loaded {
        Ok(loaded) => format!("=== snapshot\n{}", rendered(&loaded)),
        Err(faults) => {
            let mut outcome = format!("=== faults\n{faults}\n").replace("/etc/tollgate/", "");
            warned(&faults.warnings, &mut outcome);
            outcome
        }
    };
    for secret in secrets {
        assert!(!outcome.contains(&secret), "a secret is shown:\n{outcome}");
    }
    kept + &outcome
}
