//! What each fixture becomes, as text. `UPDATE=1` rewrites the texts.

use std::path::{Path, PathBuf};

use corpus::reader::{Format, Place, Screen, Settings};
use corpus::repair::{Media, Mode, Options};
use parquet::basic::{Compression, GzipLevel};

use crate::fixture::{as_parquet, fixtures, read, told};

fn check(name: &str, text: &str) {
    let path = fixtures().join(format!("{name}.golden.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).expect("writes");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == expected,
        "{name}.golden.txt is stale: UPDATE=1 cargo test -p corpus\n{text}"
    );
}

fn check_files(
    name: &str,
    format: Format,
    settings: &Settings,
    options: &Options<'_>,
    path: &Path,
) {
    let read = read(format, settings, &[path.to_owned()]);
    check(name, &told(&read, path.parent().unwrap_or(path), options));
}

fn check_rows(name: &str, format: Format, schema: &str, codec: Compression) {
    let dir = tempfile::tempdir().expect("a directory");
    let parquet = as_parquet(dir.path(), name, schema, codec);
    let settings = Settings::default();
    let read_parquet = read(format, &settings, &[parquet]);
    check(name, &told(&read_parquet, dir.path(), &Options::default()));
    let lines = read(
        format,
        &settings,
        &[fixtures().join(name).join("rows.jsonl")],
    );
    let sessions = |read: &crate::fixture::Read| -> Vec<_> {
        let all = read.records.iter();
        all.map(|(_, session)| {
            session
                .as_ref()
                .map(|s| (s.messages.clone(), s.decisions.clone(), s.licence.clone()))
                .map_err(|f| f.reason)
        })
        .collect()
    };
    assert_eq!(
        sessions(&read_parquet),
        sessions(&lines),
        "Parquet and lines differ"
    );
}

#[test]
fn toolbench_in_strict_and_in_paper_mode() {
    let path = fixtures().join("toolbench");
    let settings = Settings::default();
    check_files(
        "toolbench",
        Format::ToolBench,
        &settings,
        &Options::default(),
        &path,
    );
    let paper = Options {
        mode: Mode::Paper,
        ..Options::default()
    };
    check_files(
        "toolbench-paper",
        Format::ToolBench,
        &settings,
        &paper,
        &path,
    );
}

#[test]
fn toolllama_as_an_array_and_as_parquet_of_both_forms() {
    let path = fixtures().join("toolllama");
    check_files(
        "toolllama",
        Format::ToolLlama,
        &Settings::default(),
        &Options::default(),
        &path,
    );
    check_rows(
        "toolllama-parquet",
        Format::ToolLlama,
        "lists.schema",
        Compression::SNAPPY,
    );
    let dir = tempfile::tempdir().expect("a directory");
    let of = |schema: &str| {
        let file = as_parquet(
            dir.path(),
            "toolllama-parquet",
            schema,
            Compression::UNCOMPRESSED,
        );
        read(Format::ToolLlama, &Settings::default(), &[file]).records
    };
    assert_eq!(of("lists.schema"), of("structs.schema"));
}

#[test]
fn atif_of_several_versions() {
    let path = fixtures().join("atif");
    check_files(
        "atif",
        Format::Atif,
        &Settings::default(),
        &Options::default(),
        &path,
    );
}

#[test]
fn rows_of_parquet() {
    let gzip = Compression::GZIP(GzipLevel::default());
    check_rows(
        "terminal-bench",
        Format::TerminalBench,
        "rows.schema",
        Compression::SNAPPY,
    );
    check_rows("openhands", Format::OpenHands, "rows.schema", gzip);
    check_rows(
        "swe-agent",
        Format::SweAgent,
        "rows.schema",
        Compression::LZ4_RAW,
    );
    check_rows(
        "coderforge",
        Format::CoderForge,
        "rows.schema",
        Compression::UNCOMPRESSED,
    );
}

#[test]
fn lines_of_messages() {
    let path = fixtures().join("messages");
    check_files(
        "messages",
        Format::Messages,
        &Settings::default(),
        &Options::default(),
        &path,
    );
}

#[test]
fn omniact_as_text_and_as_images() {
    let path = fixtures().join("omniact");
    let text = Settings::default();
    check_files(
        "omniact-text",
        Format::Omniact,
        &text,
        &Options::default(),
        &path,
    );
    let image = Settings {
        screen: Screen::Image,
        screen_place: Place::Last,
        ..Settings::default()
    };
    let keep = Options {
        media: Media::Keep,
        merge: true,
        ..Options::default()
    };
    check_files("omniact-image", Format::Omniact, &image, &keep, &path);
}

#[test]
fn synthetic_sessions_are_the_same_everywhere() {
    let geometry = corpus::reader::Geometry {
        turns: corpus::reader::Spread { mean: 3.0, cv: 0.5 },
        first_prompt: corpus::reader::Spread {
            mean: 12.0,
            cv: 0.5,
        },
        appended: corpus::reader::Spread { mean: 4.0, cv: 1.0 },
        output: corpus::reader::Spread::of(3.0),
        shared: 0.5,
        think_s: Some(corpus::reader::Spread { mean: 2.0, cv: 1.0 }),
    };
    let settings = Settings {
        geometry,
        seed: 7,
        sessions: 3,
        ..Settings::default()
    };
    let read = read(Format::Synthetic, &settings, &[]);
    check(
        "synthetic",
        &told(&read, Path::new("-"), &Options::default()),
    );
}

#[test]
fn the_first_pass_names_the_records_of_the_second() {
    let dir = tempfile::tempdir().expect("a directory");
    let openhands = as_parquet(dir.path(), "openhands", "rows.schema", Compression::SNAPPY);
    let cases: [(Format, PathBuf); 5] = [
        (Format::OpenHands, openhands),
        (Format::Messages, fixtures().join("messages")),
        (Format::Omniact, fixtures().join("omniact")),
        (Format::Atif, fixtures().join("atif")),
        (Format::ToolLlama, fixtures().join("toolllama")),
    ];
    for (format, path) in cases {
        let reader = format.reader(&Settings::default());
        let mut named = std::collections::BTreeMap::new();
        for unit in reader.units(std::slice::from_ref(&path)).expect("units") {
            let mut each = |position, id: &str| {
                named.insert(position, id.to_owned());
                std::ops::ControlFlow::Continue(())
            };
            reader.list(&unit, &mut each).expect("lists");
        }
        for (position, session) in read(format, &Settings::default(), &[path]).records {
            if let Ok(session) = session {
                assert_eq!(named.get(&position), Some(&session.id), "{position}");
            }
        }
    }
}
