//! Whole builds from a reader that makes its records up, counted in words.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::*;
use crate::conversation::{Content, Decision, Message, Role};
use crate::geometry::PromptCounter;
use crate::reader::{At, Part, Position, Sink};
use crate::store::{BODIES, INDEX, MANIFEST};

/// A line of a file is a record: an id, and its messages by words; `!` is broken, `-` has nothing in it.
pub(crate) struct Lines {
    /// Breaks off after so many records, as a kill would.
    stop_after: Option<u64>,
    read: AtomicU64,
}

impl Reader for Lines {
    fn name(&self) -> &'static str {
        "lines"
    }

    fn units(&self, paths: &[PathBuf]) -> Result<Vec<Unit>, ReadError> {
        let unit = |path: &PathBuf| Unit {
            file: path.as_path().into(),
            part: Part::Whole,
            bytes: fs::metadata(path).map_or(0, |m| m.len()),
        };
        Ok(paths.iter().map(unit).collect())
    }

    fn read(&self, unit: &Unit, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let text = fs::read_to_string(&unit.file).map_err(|source| ReadError::File {
            path: unit.file.to_path_buf(),
            source,
        })?;
        for (i, line) in text.lines().enumerate() {
            let position = Position {
                file: unit.file.clone(),
                at: At::Line(i as u64 + 1),
                part: 0,
            };
            sink.tally_mut().note("lines");
            let record = match line {
                "!" => Err(Fault::broken("exclaims", "it exclaims")),
                "-" => Err(Fault::skipped("empty", "it is empty")),
                line => Ok(conversation(line)),
            };
            if sink.give(position, record).is_break() {
                break;
            }
            if self.stop_after == Some(self.read.fetch_add(1, Ordering::Relaxed) + 1) {
                return Err(ReadError::Format {
                    path: unit.file.to_path_buf(),
                    says: "interrupted".to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// Every second message is an answer, to all that stands before it.
fn conversation(line: &str) -> Conversation {
    let mut words = line.split(' ');
    let id = words.next().unwrap().to_owned();
    let messages: Vec<Message> = words
        .enumerate()
        .map(|(i, word)| Message {
            role: if i % 2 == 1 {
                Role::Assistant
            } else {
                Role::User
            },
            content: Some(Content::Text(word.replace('_', " "))),
            ..Message::default()
        })
        .collect();
    let decisions = (1..messages.len()).step_by(2).map(|answer| Decision {
        prompt: (0..answer).collect(),
        answer: Some(answer),
        think: (answer > 1).then_some(Duration::from_millis(1_500)),
        answer_tokens: None,
    });
    Conversation {
        id,
        decisions: decisions.collect(),
        messages,
        ..Conversation::default()
    }
}

/// A word is a token, and so is each message.
struct Words;

#[derive(Default)]
struct WordCounter {
    messages: Vec<Vec<u32>>,
    seen: HashMap<String, u32>,
}

impl TargetTokenizer for Words {
    fn name(&self) -> String {
        "words".to_owned()
    }

    fn counter(&self) -> Box<dyn PromptCounter + '_> {
        Box::<WordCounter>::default()
    }
}

impl PromptCounter for WordCounter {
    fn start(&mut self, _: Option<&str>, messages: &[String]) -> Result<(), String> {
        self.messages.clear();
        for message in messages {
            if message.contains("unspeakable") {
                return Err("it is not to be spoken".to_owned());
            }
            assert!(!message.contains("panic"), "told to");
            let words = message.split(' ').map(|word| {
                // The same in every thread: ids follow from the words.
                let id = crc32fast::hash(word.as_bytes());
                *self.seen.entry(word.to_owned()).or_insert(id)
            });
            self.messages.push(words.chain([1]).collect());
        }
        Ok(())
    }

    fn prompt(&mut self, places: &[usize]) -> Result<Vec<u32>, String> {
        Ok(places
            .iter()
            .flat_map(|p| self.messages[*p].clone())
            .collect())
    }

    fn answer(&mut self, place: usize) -> Result<u32, String> {
        Ok(self.messages[place].len() as u32)
    }
}

/// Says that it repaired what begins with `r`.
struct Nothing;

impl Repair for Nothing {
    fn name(&self) -> String {
        "nothing".to_owned()
    }

    fn repair(
        &self,
        conversation: Conversation,
    ) -> Result<(Conversation, BTreeMap<String, u64>), Fault> {
        let repairs = conversation
            .id
            .starts_with('r')
            .then(|| ("looked_at".to_owned(), 2));
        Ok((conversation, repairs.into_iter().collect()))
    }
}

/// Sessions of two requests each.
pub(crate) fn numbered(n: usize) -> String {
    let line = |i| format!("s{i} you_are_kind question_{i} answer_{i} more answer_two_{i}\n");
    (0..n).map(line).collect()
}

pub(crate) fn reader() -> Lines {
    Lines {
        stop_after: None,
        read: AtomicU64::new(0),
    }
}

pub(crate) fn plan<'a>(out: &Path, reader: &'a dyn Reader, path: &Path) -> Plan<'a> {
    Plan {
        out: out.to_owned(),
        tool: "prove 0".to_owned(),
        model: "m".to_owned(),
        seed: 1,
        output: Output::Recorded,
        ignore_eos: false,
        stream: true,
        max_context: 10_000,
        block_tokens: 2,
        keep_duplicates: false,
        strict: false,
        threads: 3,
        profiles: vec![ProfilePlan {
            name: "chat".to_owned(),
            reader,
            options: BTreeMap::new(),
            paths: vec![path.to_owned()],
            sessions: None,
            licence: Some("CC0-1.0".to_owned()),
        }],
    }
}

fn run(plan: &Plan<'_>) -> Result<Manifest, BuildError> {
    build(plan, &Words, &Nothing, &mut |_| {})
}

/// A corpus of these lines.
pub(crate) fn built(lines: &str) -> (tempfile::TempDir, Corpus) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lines.txt");
    fs::write(&path, lines).unwrap();
    let out = temp.path().join("corpus");
    run(&plan(&out, &reader(), &path)).unwrap();
    (temp, Corpus::open(&out).unwrap())
}

fn files(dir: &Path) -> [Vec<u8>; 3] {
    [BODIES, INDEX, MANIFEST].map(|name| fs::read(dir.join(name)).unwrap())
}

#[test]
fn a_build_counts_all_that_it_did() {
    let lines = "r1 a b c d\n!\n-\ntwin_1 a_b_c d\ntwin_2 a_b_c d\nbad unspeakable b\nworse panic b\nlone a\n";
    let (_temp, corpus) = built(lines);
    let manifest = corpus.manifest();
    let profile = &manifest.profiles[0];
    assert_eq!((manifest.sessions, manifest.requests), (2, 3));
    assert_eq!((manifest.duplicates, manifest.unique_sessions), (1, 2));
    assert_eq!(
        manifest.repairs,
        BTreeMap::from([("looked_at".to_owned(), 2)])
    );
    assert_eq!(
        profile.licences,
        BTreeMap::from([("CC0-1.0".to_owned(), 2)])
    );
    assert_eq!(profile.notes["lines"], 8);
    let skipped: Vec<(&str, u64)> = profile
        .skipped
        .iter()
        .map(|(k, v)| (k.as_str(), *v))
        .collect();
    assert_eq!(
        skipped,
        [
            ("empty", 1),
            ("exclaims", 1),
            ("no_decision", 1),
            ("not_counted", 1),
            ("refused_by_target", 1)
        ]
    );
    assert_eq!(manifest.skipped, 5);
    assert_eq!(manifest.skipped_list[0].place, "lines.txt, line 2");
    assert_eq!(manifest.skipped_list[0].says, "it exclaims");
    assert_eq!(profile.sources[0].file, "lines.txt");
    assert_eq!(profile.sources[0].bytes, lines.len() as u64);
    assert_eq!(profile.geometry.turns.max, 2);
    assert_eq!(profile.geometry.think_ms.p50, 1_500);
    let unrolled: u64 = corpus.sessions().map(|s| s.bytes_unrolled()).sum();
    assert_eq!(manifest.bytes_unrolled, unrolled);
    let manifest_bytes = corpus.manifest().to_text().len() as u64;
    assert_eq!(
        manifest.bytes_stored + manifest_bytes,
        corpus.bytes_on_disk()
    );
    corpus.verify(|_| {}).unwrap();
}

#[test]
fn what_is_odd_about_a_text_is_in_the_manifest() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("logs.jsonl");
    let said = r#"[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]"#;
    let mut text = format!(r#"{{"id":"x","id":"y","score":NaN,"top":Infinity,"messages":{said}}}"#)
        .into_bytes();
    text.extend(b"\n{\"id\":\"\xff\",\"messages\":[]}\n");
    fs::write(&path, text).unwrap();
    let reader = crate::reader::Format::Messages.reader(&crate::reader::Settings::default());
    let manifest = run(&plan(&temp.path().join("corpus"), &*reader, &path)).unwrap();
    let odd = manifest.profiles[0].oddities.iter();
    let odd: Vec<(&str, u64)> = odd.map(|(kind, n)| (kind.as_str(), *n)).collect();
    let expected = [
        ("duplicate_members", 1),
        ("invalid_utf8", 1),
        ("numbers_not_finite", 2),
    ];
    assert_eq!(odd, expected);
}

#[test]
fn a_request_is_what_was_asked_with_the_length_of_the_answer() {
    let (_temp, corpus) = built("s a_b c_d e f\n");
    let session = corpus.session(0).unwrap();
    let sent: Vec<String> = session
        .turns()
        .map(|turn| String::from_utf8(turn.parts().concat()).unwrap())
        .collect();
    let head = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":["#;
    assert_eq!(
        sent[0],
        format!(r#"{head}{{"role":"user","content":"a b"}}],"max_tokens":3}}"#)
    );
    assert!(
        sent[1].ends_with(r#"{"role":"user","content":"e"}],"max_tokens":2}"#),
        "{}",
        sent[1]
    );
    assert!(session.turn(1).unwrap().goes_on());
}

#[test]
fn a_repeated_session_is_kept_where_it_is_asked_for() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lines.txt");
    fs::write(&path, "a x y\nb x y\n").unwrap();
    let reader = reader();
    let mut plan = plan(&temp.path().join("corpus"), &reader, &path);
    plan.keep_duplicates = true;
    let manifest = run(&plan).unwrap();
    assert_eq!(
        (
            manifest.sessions,
            manifest.duplicates,
            manifest.unique_sessions
        ),
        (2, 1, 1)
    );
    // Two tokens of the prompt's three are a block, which the second session finds.
    assert_eq!(
        manifest.prefix.hits.hit_tokens,
        2 * ((manifest.prefix.hits.queries_tokens / 2 - 1) / 2)
    );
}

#[test]
fn a_session_ends_before_the_request_that_is_beyond_the_context() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lines.txt");
    fs::write(
        &path,
        "long a b c_c_c_c_c_c d e f\nhuge a_a_a_a_a_a_a_a_a_a_a_a_a_a b\n",
    )
    .unwrap();
    let reader = reader();
    let mut plan = plan(&temp.path().join("corpus"), &reader, &path);
    plan.max_context = 12;
    let manifest = run(&plan).unwrap();
    assert_eq!(
        (manifest.sessions, manifest.requests, manifest.sessions_cut),
        (1, 1, 1)
    );
    assert_eq!(manifest.profiles[0].skipped["beyond_context"], 1);
}

#[test]
fn strict_stops_at_the_first_broken_record_and_names_it() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lines.txt");
    fs::write(&path, "a x y\n-\n!\nb x y\n").unwrap();
    let reader = reader();
    let mut plan = plan(&temp.path().join("corpus"), &reader, &path);
    plan.strict = true;
    let error = run(&plan).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("lines.txt, line 3: it exclaims"),
        "{error}"
    );
    assert!(!plan.out.exists());
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lines.txt");
    fs::write(&path, numbered(200)).unwrap();
    let reader = reader();
    let of = |threads: usize| {
        let mut plan = plan(
            &temp.path().join(format!("corpus-{threads}")),
            &reader,
            &path,
        );
        plan.threads = threads;
        run(&plan).unwrap();
        files(&plan.out)
    };
    assert_eq!(of(1), of(7));
}

#[test]
fn a_sample_is_what_its_seed_says_and_a_larger_one_has_all_of_it() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lines.txt");
    fs::write(&path, numbered(100)).unwrap();
    let reader = reader();
    let of = |name: &str, sessions: u64, seed: u64| {
        let mut plan = plan(&temp.path().join(name), &reader, &path);
        plan.profiles[0].sessions = Some(sessions);
        plan.seed = seed;
        let manifest = run(&plan).unwrap();
        assert_eq!(manifest.profiles[0].candidates, Some(100));
        let corpus = Corpus::open(&plan.out).unwrap();
        corpus.sessions().map(|s| s.id()).collect::<Vec<_>>()
    };
    let (ten, again) = (of("a", 10, 1), of("b", 10, 1));
    let (other, twenty) = (of("c", 10, 2), of("d", 20, 1));
    assert_eq!(ten.len(), 10);
    assert_eq!(ten, again);
    assert_ne!(ten, other);
    assert!(ten.iter().all(|id| twenty.contains(id)));
    assert_eq!(of("e", 1_000, 1).len(), 100);
}

/// Interrupted after any number of records, and gone on from there.
#[test]
fn a_build_that_was_interrupted_goes_on_to_the_same_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lines.txt");
    fs::write(&path, format!("{}!\n-\n{}", numbered(20), numbered(9))).unwrap();
    let whole = temp.path().join("whole");
    run(&plan(&whole, &reader(), &path)).unwrap();
    for stop_after in [0, 1, 7, 20, 21, 30] {
        let out = temp.path().join(format!("cut-{stop_after}"));
        let stopping = reader();
        let stopped = AtomicU64::new(0);
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            build(
                &plan(&out, &stopping, &path),
                &Words,
                &Nothing,
                &mut |progress| {
                    // The caller dies: nothing after what is on the disk is noted.
                    if stopped.fetch_add(1, Ordering::Relaxed) == stop_after {
                        panic!("killed after {} records", progress.records);
                    }
                },
            )
        }));
        assert!(killed.is_err(), "{stop_after}");
        assert!(!out.exists());
        run(&plan(&out, &reader(), &path)).unwrap();
        assert_eq!(files(&out), files(&whole), "{stop_after}");
        assert!(!StoreWriter::work_dir(&out).exists());
    }
}

/// As before, with a state on the disk in the middle.
#[test]
fn a_build_goes_on_from_what_was_on_the_disk() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lines.txt");
    fs::write(&path, format!("{}!\n{}", numbered(20), numbered(9))).unwrap();
    let whole = temp.path().join("whole");
    run(&plan(&whole, &reader(), &path)).unwrap();
    for records in [1, 13, 21, 29] {
        let out = temp.path().join(format!("cut-{records}"));
        let work = StoreWriter::work_dir(&out);
        let reader = reader();
        let plan = plan(&out, &reader, &path);
        // A pipeline that ends early leaves its state behind as a kill after a sync would.
        let prepared: Vec<_> = plan
            .profiles
            .iter()
            .map(|p| prepare(&plan, p).unwrap())
            .collect();
        fs::create_dir_all(&work).unwrap();
        let print = journal::fingerprint(&plan, &prepared, "words", "nothing");
        let mut notes = journal::Journal::open(&work, &print).unwrap();
        let cut = Lines {
            stop_after: Some(records),
            read: AtomicU64::new(0),
        };
        let cut_plan = ProfilePlan {
            reader: &cut,
            name: "chat".to_owned(),
            options: BTreeMap::new(),
            paths: vec![path.clone()],
            sessions: None,
            licence: None,
        };
        let half = [Prepared {
            plan: &cut_plan,
            units: prepared[0].units.clone(),
            sources: Vec::new(),
            stamps: stamps::Stamps::default(),
            sample: None,
        }];
        drop(pipeline::run(&plan, &half, &Words, &Nothing, &mut notes, &mut |_| {}).unwrap());
        drop(notes);
        // Of what it noted, keep what is before the unreadable rest.
        keep_journal_until(&work, records, &print);
        let mut before = None;
        let mut watch = |progress: &Progress| {
            before.get_or_insert(progress.bytes_unrolled_before);
        };
        build(&plan, &Words, &Nothing, &mut watch).unwrap();
        assert!(before.is_some_and(|bytes| bytes > 0), "{records}");
        assert_eq!(files(&out), files(&whole), "{records}");
    }
}

/// Rewrites the journal as if the last sync had been after so many records: everything is rebuilt up to there.
fn keep_journal_until(work: &Path, records: u64, print: &str) {
    let path = work.join("journal");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(print));
    // The state after `records` records is found by replaying the facts: each line is one record.
    let facts = fs::read_to_string(work.join("facts")).unwrap();
    let kept: String = facts.split_inclusive('\n').take(records as usize).collect();
    let sessions = kept.lines().filter(|l| l.contains("\"kept\":true")).count() as u64;
    let turns: u64 = kept.matches("\"p\":").count() as u64;
    let fresh: u64 = kept
        .split("\"f\":")
        .skip(1)
        .map(|rest| rest.split(',').next().unwrap().parse::<u64>().unwrap())
        .sum();
    let record = fs::read(work.join("sessions.part")).unwrap();
    let bodies = match sessions {
        0 => 0,
        n => {
            let at = (n as usize - 1) * 48;
            let number = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
            number(at + 16) + number(at + 24)
        }
    };
    let unrolled: u64 = (0..sessions as usize)
        .map(|n| u64::from_le_bytes(record[n * 48 + 40..n * 48 + 48].try_into().unwrap()))
        .sum();
    let skipped = kept
        .lines()
        .filter(|l| l.starts_with("{\"skipped\""))
        .count();
    let state = serde_json::json!({
        "at": {"profile": 0, "unit": 0, "record": records},
        "lengths": {"bodies": bodies, "sessions": sessions * 48, "turns": turns * 64},
        "facts": kept.len(), "blocks": fresh * 8, "records": records, "sessions": sessions,
        "requests": turns, "skipped": skipped, "bytes_unrolled": unrolled,
    })
    .to_string();
    let crc = crc32fast::hash(state.as_bytes());
    fs::write(
        &path,
        format!("{print}\n{crc:08x} {state}\n12345678 half a li"),
    )
    .unwrap();
}

#[test]
fn a_build_with_other_options_does_not_go_on() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lines.txt");
    fs::write(&path, "a x y\n!\n").unwrap();
    let reader = reader();
    let mut plan = plan(&temp.path().join("corpus"), &reader, &path);
    plan.strict = true;
    run(&plan).unwrap_err();
    plan.strict = false;
    let error = run(&plan).unwrap_err();
    assert!(
        error.to_string().contains("other options or sources"),
        "{error}"
    );
}

#[test]
fn a_second_build_into_the_same_directory_is_refused_while_the_first_goes_on() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lines.txt");
    fs::write(&path, numbered(3)).unwrap();
    let out = temp.path().join("corpus");
    let reader = reader();
    let plan = plan(&out, &reader, &path);
    let mut refused = Vec::new();
    let mut watch = |_: &Progress| refused.push(run(&plan).unwrap_err().to_string());
    build(&plan, &Words, &Nothing, &mut watch).unwrap();
    assert!(!refused.is_empty());
    for says in refused {
        assert!(says.contains("in use by another build"), "{says}");
    }
    assert_eq!(fs::read_dir(&out).unwrap().count(), 3);
    assert_eq!(Corpus::open(&out).unwrap().len(), 3);
    assert!(run(&plan).unwrap_err().to_string().contains("not empty"));
    assert!(!StoreWriter::work_dir(&out).exists());
}

/// Says that a file was written ten seconds later than it was.
fn rewritten(path: &Path, text: &str) {
    let later = fs::metadata(path).unwrap().modified().unwrap() + Duration::from_secs(10);
    fs::write(path, text).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(later).unwrap();
}

#[test]
fn a_source_that_changes_while_it_is_read_ends_the_build_and_nothing_of_it_is_kept() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lines.txt");
    // The second has as many bytes as the first.
    for (first, second) in [("a x y\nb z y\n", "a x y\nb w y\n"), ("a x y\n", "a x\n")] {
        fs::write(&path, first).unwrap();
        let out = temp.path().join(second.len().to_string());
        let reader = reader();
        let plan = plan(&out, &reader, &path);
        let mut change = |_: &Progress| rewritten(&path, second);
        let error = build(&plan, &Words, &Nothing, &mut change).unwrap_err();
        let says = error.to_string();
        assert!(
            says.contains("lines.txt: changed while it was read"),
            "{says}"
        );
        assert!(!out.exists());
        // Even with what it had at first, it does not go on from a mixture.
        fs::write(&path, first).unwrap();
        let mut read = 0;
        let mut watch = |progress: &Progress| read = progress.records;
        let manifest = build(&plan, &Words, &Nothing, &mut watch).unwrap();
        let lines = first.lines().count() as u64;
        assert_eq!((read, manifest.sessions), (lines, lines));
    }
}

#[test]
fn a_file_that_an_index_names_is_watched_too() {
    let temp = tempfile::tempdir().unwrap();
    let set = temp.path().join("set");
    fs::create_dir(&set).unwrap();
    let (index, task) = (set.join("train.json"), set.join("task.txt"));
    let entries = r#"{"0": {"task": "task.txt"}, "1": {"task": "none.txt"}}"#;
    fs::write(&index, entries).unwrap();
    let text = "Task: Go.\nOutput Script:\nclick()";
    fs::write(&task, text).unwrap();
    let reader = crate::reader::Format::Omniact.reader(&crate::reader::Settings::default());
    let mut plan = plan(&temp.path().join("corpus"), &*reader, &set);
    let mut change = |_: &Progress| rewritten(&task, text);
    let error = build(&plan, &Words, &Nothing, &mut change).unwrap_err();
    assert!(
        error.to_string().contains("task.txt: changed while"),
        "{error}"
    );
    // An interrupted build does not go on with another text.
    plan.strict = true;
    let error = run(&plan).unwrap_err().to_string();
    assert!(error.contains("none.txt"), "{error}");
    assert_eq!(run(&plan).unwrap_err().to_string(), error);
    rewritten(&task, text);
    let error = run(&plan).unwrap_err().to_string();
    assert!(error.contains("other options or sources"), "{error}");
    // Nor does it where one came that was not there.
    fs::remove_dir_all(StoreWriter::work_dir(&plan.out)).unwrap();
    run(&plan).unwrap_err();
    fs::write(set.join("none.txt"), text).unwrap();
    let error = run(&plan).unwrap_err().to_string();
    assert!(error.contains("other options or sources"), "{error}");
}

#[test]
fn a_plan_that_makes_no_sense_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lines.txt");
    fs::write(&path, "a x y\n").unwrap();
    let reader = reader();
    let says = |change: &dyn Fn(&mut Plan<'_>)| {
        let mut plan = plan(&temp.path().join("corpus"), &reader, &path);
        change(&mut plan);
        run(&plan).unwrap_err().to_string()
    };
    assert!(says(&|plan| plan.profiles.clear()).contains("needs a profile"));
    assert!(says(&|plan| plan.profiles[0].sessions = Some(0)).contains("sessions must be"));
    assert!(says(&|plan| plan.threads = 0).contains("at least 1"));
    assert!(says(&|plan| plan.out = temp.path().to_owned()).contains("not empty"));
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1);
    let twice = says(&|plan| {
        let profile = ProfilePlan {
            reader: plan.profiles[0].reader,
            name: "chat".to_owned(),
            options: BTreeMap::new(),
            paths: Vec::new(),
            sessions: None,
            licence: None,
        };
        plan.profiles.push(profile);
    });
    assert!(twice.contains("twice"), "{twice}");
}

#[test]
fn a_file_that_cannot_be_read_is_skipped_and_listed() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("lines.txt");
    fs::write(&path, "a x y\nb z y\n").unwrap();
    let cut = Lines {
        stop_after: Some(1),
        read: AtomicU64::new(0),
    };
    let manifest = run(&plan(&temp.path().join("corpus"), &cut, &path)).unwrap();
    assert_eq!((manifest.sessions, manifest.skipped), (1, 1));
    assert_eq!(manifest.skipped_list[0].reason, "unreadable");
    assert!(manifest.skipped_list[0].says.contains("interrupted"));
}
