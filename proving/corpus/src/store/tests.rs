//! What was written is read back, and damage of any kind is refused.

use std::fs;
use std::os::unix::fs::FileExt;

use proptest::prelude::*;

use super::*;
use crate::manifest::{Manifest, Profile};
use crate::regular::tests::pipe_at;
use crate::seeded::seeded;

/// A session of `n` requests that go on, with a head of its own or a shared one.
fn session(profile: u32, n: usize, head: &str) -> StoredSession {
    let texts: Vec<String> = (0..n).map(|i| format!("{{\"m\":{profile}{i}}}")).collect();
    let bodies = texts.join(",").into_bytes();
    let mut end = 0;
    let turns = texts.iter().enumerate().map(|(i, text)| {
        end += text.len() + usize::from(i > 0);
        StoredTurn {
            body: 0..end,
            tail: format!("],\"max_tokens\":{}}}", i % 2).into_bytes(),
            prompt_tokens: 10 + i as u32,
            new_tokens: 3,
            answer_tokens: 7,
            think: (i > 0).then(|| std::time::Duration::from_millis(i as u64)),
            goes_on: i > 0,
        }
    });
    StoredSession {
        profile,
        id: format!("session-{profile}-{n}"),
        head: head.as_bytes().to_vec(),
        turns: turns.collect(),
        bodies,
    }
}

fn sessions() -> Vec<StoredSession> {
    vec![
        session(0, 3, "{\"messages\":["),
        session(0, 1, "{\"messages\":["),
        session(2, 2, "{\"tools\":[],\"messages\":["),
    ]
}

fn write(dir: &Path, sessions: &[StoredSession]) {
    let work = StoreWriter::work_dir(dir);
    fs::create_dir_all(&work).unwrap();
    let mut writer = StoreWriter::resume(&work, Lengths::default()).unwrap();
    for session in sessions {
        writer.append(session).unwrap();
    }
    finish(writer, dir, sessions);
}

fn finish(writer: StoreWriter, dir: &Path, sessions: &[StoredSession]) {
    let manifest = Manifest {
        sessions: sessions.len() as u64,
        requests: sessions.iter().map(|s| s.turns.len() as u64).sum(),
        profiles: vec![Profile::default(); 3],
        ..Manifest::default()
    };
    writer
        .finish(dir, &manifest.to_text(), 3, &[], "mark")
        .unwrap();
}

fn corpus() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("corpus");
    write(&dir, &sessions());
    (temp, dir)
}

fn checked(dir: &Path) -> Result<Verified, StoreError> {
    Corpus::open(dir)?.verify(|_| {})
}

#[test]
fn what_was_written_is_read_back() {
    let (_temp, dir) = corpus();
    let corpus = Corpus::open(&dir).unwrap();
    assert_eq!((corpus.len(), corpus.requests()), (3, 6));
    assert_eq!([0, 1, 2, 3].map(|p| corpus.sessions_of(p)), [2, 0, 1, 0]);
    for (read, written) in corpus.sessions().zip(sessions()) {
        assert_eq!(read.id(), written.id);
        assert_eq!(read.profile(), written.profile as usize);
        let mut unrolled = 0;
        for (turn, stored) in read.turns().zip(&written.turns) {
            let whole = [
                &written.head,
                &written.bodies[stored.body.clone()],
                &stored.tail,
            ]
            .map(|part| part.to_vec());
            assert_eq!(turn.parts().map(<[u8]>::to_vec), whole);
            assert_eq!(turn.bytes().map(|b| b.to_vec()), whole);
            assert_eq!(turn.content_length(), whole.concat().len() as u64);
            assert_eq!(turn.think(), stored.think);
            assert_eq!(
                (turn.prompt_tokens(), turn.new_tokens()),
                (stored.prompt_tokens, 3)
            );
            assert_eq!((turn.answer_tokens(), turn.goes_on()), (7, stored.goes_on));
            unrolled += turn.content_length();
        }
        assert_eq!(read.turns().count(), written.turns.len());
        assert_eq!(read.bytes_unrolled(), unrolled);
    }
    assert!(corpus.session_of(0, 2).is_none() && corpus.session_of(1, 0).is_none());
    assert_eq!(corpus.session_of(2, 0).unwrap().number(), 2);
    let all = corpus.verify(|_| {}).unwrap();
    assert_eq!((all.sessions, all.requests), (3, 6));
    assert_eq!(all.bytes, fs::metadata(dir.join(BODIES)).unwrap().len());
}

#[test]
fn bytes_outlive_the_corpus_and_are_not_copied() {
    let (_temp, dir) = corpus();
    let corpus = Corpus::open(&dir).unwrap();
    let turn = corpus.session(0).unwrap().turn(1).unwrap();
    let bytes = turn.bytes();
    assert_eq!(bytes[1].as_ptr(), turn.parts()[1].as_ptr());
    let whole = turn.parts().concat();
    drop(corpus);
    assert_eq!(bytes.map(|b| b.to_vec()).concat(), whole);
}

#[test]
fn sessions_with_the_same_head_store_it_once() {
    let (_temp, dir) = corpus();
    let bodies = fs::read(dir.join(BODIES)).unwrap();
    let head = b"{\"messages\":[";
    let times = bodies.windows(head.len()).filter(|w| w == head).count();
    assert_eq!(times, 1);
}

#[test]
fn a_writer_that_was_interrupted_anywhere_writes_the_same_bytes() {
    let (_temp, whole) = corpus();
    let all = sessions();
    for cut in 0..=all.len() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("corpus");
        let work = StoreWriter::work_dir(&dir);
        fs::create_dir_all(&work).unwrap();
        let mut writer = StoreWriter::resume(&work, Lengths::default()).unwrap();
        all[..cut]
            .iter()
            .for_each(|s| assert!(writer.append(s).unwrap() > 0));
        writer.sync().unwrap();
        let lengths = writer.lengths();
        // More was written, and nobody noted it.
        writer.append(&session(2, 5, "other")).unwrap();
        drop(writer);
        let mut writer = StoreWriter::resume(&work, lengths).unwrap();
        all[cut..]
            .iter()
            .for_each(|s| assert!(writer.append(s).unwrap() > 0));
        finish(writer, &dir, &all);
        for name in [BODIES, INDEX, MANIFEST] {
            assert_eq!(
                fs::read(dir.join(name)).unwrap(),
                fs::read(whole.join(name)).unwrap()
            );
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 3);
    }
}

#[test]
fn an_empty_corpus_is_one() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("corpus");
    write(&dir, &[]);
    assert_eq!(checked(&dir).unwrap(), Verified::default());
}

#[test]
fn a_byte_that_changed_anywhere_is_refused() {
    let (_temp, dir) = corpus();
    for name in [BODIES, INDEX, MANIFEST] {
        let path = dir.join(name);
        let whole = fs::read(&path).unwrap();
        // Written in place: a file that is made anew for each byte takes the kernel longer than all else here.
        let file = fs::File::options().write(true).open(&path).unwrap();
        for (at, byte) in (0..).zip(&whole) {
            file.write_all_at(&[byte ^ 1 << (at % 8)], at).unwrap();
            let error = checked(&dir).expect_err(&format!("{name} at {at}"));
            assert!(error.is_damage(), "{name} at {at}: {error}");
            assert!(error.to_string().contains(name), "{name} at {at}: {error}");
            file.write_all_at(&[*byte], at).unwrap();
        }
    }
    checked(&dir).unwrap();
}

#[test]
fn a_file_that_was_cut_or_grew_is_refused() {
    let (_temp, dir) = corpus();
    for name in [BODIES, INDEX, MANIFEST] {
        let path = dir.join(name);
        let whole = fs::read(&path).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        for length in (0..=whole.len() + 1).rev() {
            file.set_len(length as u64).unwrap();
            assert_eq!(
                checked(&dir).is_ok(),
                length == whole.len(),
                "{name} {length}"
            );
        }
        fs::write(&path, &whole).unwrap();
        let hidden = dir.join("hidden");
        fs::rename(&path, &hidden).unwrap();
        assert!(!checked(&dir).unwrap_err().is_damage());
        fs::rename(&hidden, &path).unwrap();
    }
}

#[test]
fn a_file_without_an_end_is_neither_read_nor_waited_for() {
    let (_temp, dir) = corpus();
    for name in [BODIES, INDEX, MANIFEST] {
        let (path, hidden) = (dir.join(name), dir.join("hidden"));
        fs::rename(&path, &hidden).unwrap();
        pipe_at(&path);
        let says = checked(&dir).unwrap_err().to_string();
        assert!(
            says.contains(name) && says.contains("no regular file"),
            "{says}"
        );
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let says = checked(&dir).unwrap_err().to_string();
        assert!(
            says.contains(name) && says.contains("no regular file"),
            "{says}"
        );
        fs::remove_file(&path).unwrap();
        fs::rename(&hidden, &path).unwrap();
    }
    // A hundred gigabytes of nothing: what is beyond the length that was written is not read.
    let file = fs::File::options().write(true).open(dir.join(MANIFEST));
    file.unwrap().set_len(100 << 30).unwrap();
    let error = checked(&dir).unwrap_err();
    assert!(error.is_damage(), "{error}");
}

#[test]
fn a_file_of_another_corpus_is_refused() {
    let (_temp, dir) = corpus();
    let temp = tempfile::tempdir().unwrap();
    let other = temp.path().join("other");
    let mut changed = sessions();
    changed[1].bodies[2] ^= 1;
    changed[1].turns[0].answer_tokens = 8;
    write(&other, &changed);
    for name in [BODIES, INDEX] {
        let (mine, path) = (fs::read(dir.join(name)).unwrap(), dir.join(name));
        fs::copy(other.join(name), &path).unwrap();
        assert!(checked(&dir).unwrap_err().is_damage(), "{name}");
        fs::write(&path, mine).unwrap();
    }
}

#[test]
fn another_version_is_named() {
    let (_temp, dir) = corpus();
    let path = dir.join(INDEX);
    let mut index = fs::read(&path).unwrap();
    index[8] = 9;
    fs::write(&path, index).unwrap();
    let says = checked(&dir).unwrap_err().to_string();
    assert!(
        says.contains("version 9") && says.contains("version 1"),
        "{says}"
    );
}

proptest! {
    #![proptest_config(seeded("an_index_that_lies", 96))]

    /// An index whose checksums were made to fit is still not believed: nothing outside is reached.
    #[test]
    fn an_index_that_lies_is_refused_or_stays_inside(at in 0_usize..448, value in any::<u64>(), width in 0_usize..3) {
        let (_temp, dir) = corpus();
        let path = dir.join(INDEX);
        let mut index = fs::read(&path).unwrap();
        prop_assert_eq!(index.len(), 64 + 3 * 48 + 6 * 64);
        let bytes = value.to_le_bytes();
        let n = [1, 4, 8][width];
        index[64 + at..64 + at + n].copy_from_slice(&bytes[..n]);
        let mut header = layout::Header::read(index.first_chunk().unwrap()).ok().unwrap();
        header.records_crc = crc32fast::hash(&index[64..]);
        index[..64].copy_from_slice(&header.to_bytes());
        fs::write(&path, &index).unwrap();
        if let Ok(corpus) = Corpus::open(&dir) {
            for session in corpus.sessions() {
                prop_assert!(session.id().len() <= 1_000);
                for turn in session.turns() {
                    let parts = turn.parts();
                    prop_assert_eq!(parts.concat().len() as u64, turn.content_length());
                    prop_assert_eq!(turn.bytes().map(|b| b.len()), parts.map(<[u8]>::len));
                }
            }
        }
    }
}
