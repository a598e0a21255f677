//! What the program is made of, as CycloneDX 1.5 in JSON: crates by their checksums, who links whom, and the Debian packages
//! of an image.
//!
//! Invariant: the same source and the same packages make the same bytes: the serial number is a hash of the rest, the time is the
//! commit's.
//! Not here: which of them have advisories. That is what others read the list for.

use serde_json::{Value, json};

use super::crates::{Id, Linked};
use super::debian::Taken;
use super::{Release, date, sha256, write};

/// The list of a binary, or, with the packages beside it, of an image.
pub(super) fn sbom(
    release: &Release,
    linked: &[Linked],
    packages: &[Taken],
) -> Result<String, String> {
    let created = date(&release.epoch, "+%Y-%m-%dT%H:%M:%SZ")?;
    let binary = sha256(&release.binary)?;
    let mut list = list(&release.version, &created, &binary, linked, packages);
    let unnumbered = release.stage.join("unnumbered.cdx.json");
    write(&unnumbered, &list.to_string())?;
    if let Some(members) = list.as_object_mut() {
        let serial = serial(&sha256(&unnumbered)?);
        members.insert("serialNumber".to_owned(), serial.into());
    }
    serde_json::to_string_pretty(&list)
        .map(|text| text + "\n")
        .map_err(|cause| cause.to_string())
}

/// All but its serial number.
fn list(
    version: &str,
    created: &str,
    binary: &str,
    linked: &[Linked],
    packages: &[Taken],
) -> Value {
    let (own, others): (Vec<_>, Vec<_>) = linked.iter().partition(|one| one.id.0 == "tollgate");
    let crates = others.iter().map(|one| component(one));
    let packages = packages.iter().map(package);
    let dependencies = linked.iter().map(|one| {
        let needs: Vec<String> = one.needs.iter().map(reference).collect();
        json!({ "ref": reference(&one.id), "dependsOn": needs })
    });
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": created,
            "component": {
                "type": "application",
                "bom-ref": own.first().map(|own| reference(&own.id)),
                "name": "tollgate",
                "version": version,
                "hashes": [{ "alg": "SHA-256", "content": binary }],
                "licenses": own.first().map(|own| licences(&own.licence)),
            },
        },
        "components": crates.chain(packages).collect::<Vec<Value>>(),
        "dependencies": dependencies.collect::<Vec<Value>>(),
    })
}

/// Crates of this repository have no address: another of that name is in the registry.
fn component(one: &Linked) -> Value {
    let (name, version) = &one.id;
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(&one.id),
        "name": name,
        "version": version,
        "licenses": licences(&one.licence),
    });
    if let (Some(members), Some(checksum)) = (component.as_object_mut(), &one.checksum) {
        let hashes = json!([{ "alg": "SHA-256", "content": checksum }]);
        members.insert("hashes".to_owned(), hashes);
        members.insert(
            "purl".to_owned(),
            format!("pkg:cargo/{name}@{version}").into(),
        );
    }
    component
}

fn package(taken: &Taken) -> Value {
    let version = taken.version.replace('+', "%2B").replace('~', "%7E");
    let purl = format!(
        "pkg:deb/debian/{}@{version}?arch={}",
        taken.name, taken.architecture
    );
    json!({
        "type": "library",
        "bom-ref": purl,
        "name": taken.name,
        "version": taken.version,
        "purl": purl,
        "hashes": [{ "alg": "SHA-256", "content": taken.sha256 }],
    })
}

fn licences(expression: &str) -> Value {
    json!([{ "expression": expression }])
}

/// What the list itself calls a crate.
fn reference((name, version): &Id) -> String {
    format!("{name}@{version}")
}

/// A UUID of a kind that says that it is a hash.
fn serial(sum: &str) -> String {
    let part = |from: usize, to: usize| sum.get(from..to).unwrap_or_default();
    format!(
        "urn:uuid:{}-{}-8{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{list, serial};
    use crate::dist::crates::tests::LINKED;
    use crate::dist::debian::Taken;

    #[test]
    fn every_name_in_it_is_one_that_it_explains() {
        let libc = Taken {
            name: "libc6".to_owned(),
            version: "2.36-9+deb12u14".to_owned(),
            architecture: "amd64".to_owned(),
            sha256: "5e".to_owned(),
            file: "libc6.deb".into(),
        };
        let linked = &*LINKED;
        let list = list("0.1.0", "2026-01-01T00:00:00Z", "5e", linked, &[libc]);
        let components = list["components"].as_array().expect("components");
        let mut names: BTreeSet<&str> = components
            .iter()
            .map(|one| one["bom-ref"].as_str().expect("each has a name"))
            .collect();
        assert_eq!(names.len(), components.len(), "each its own");
        assert_eq!(
            components.len(),
            linked.len(),
            "one is the program, one the package"
        );
        names.extend(list["metadata"]["component"]["bom-ref"].as_str());
        let dependencies = list["dependencies"].as_array().expect("dependencies");
        assert_eq!(dependencies.len(), linked.len());
        for one in dependencies {
            let to = one["dependsOn"].as_array().expect("a list");
            for name in to.iter().chain([&one["ref"]]) {
                assert!(names.contains(name.as_str().expect("a name")), "{name}");
            }
        }
        let debian = components.last().expect("the package");
        assert_eq!(
            debian["purl"],
            "pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64"
        );
        let wire = components.iter().find(|one| one["name"] == "wire");
        assert!(wire.expect("is linked").get("purl").is_none());
    }

    #[test]
    fn a_serial_number_is_a_uuid() {
        let sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        assert_eq!(serial(sum), "urn:uuid:01234567-89ab-8def-8123-456789abcdef");
    }
}
