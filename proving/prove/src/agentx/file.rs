//! Traces as AgentX's data have them: a line of JSON each, in Weka's form.
//!
//! Streams are named as the reader `agentx` of the corpus names its sessions, so that a stream's requests are a session's turns.
//! Invariant: a line that says too little is left out and told of, and nothing else is lost.
//! Not here: prompts (`corpus`), when requests are due (`experiment::lanes`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use experiment::lanes::{Ask, Trace};
use serde_json::Value;

use super::AgentXError;
use crate::files;

/// Deeper nested sub-agents are not followed.
const MOST_DEEP: usize = 8;
/// Where a line says nothing of it.
const BLOCK: u64 = 64;
/// Lines that are told of at most.
const MOST_FAULTS: usize = 1_000;

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) traces: Vec<Trace>,
    /// Lines that were left out, and why.
    pub(super) faults: Vec<String>,
}

/// Reads all files.
pub(super) fn read(paths: &[PathBuf]) -> Result<Read, AgentXError> {
    let mut all = Read::default();
    for path in paths {
        let text = files::read(path)?;
        all.add(path, &text);
    }
    Ok(all)
}

impl Read {
    fn add(&mut self, path: &Path, text: &str) {
        for (number, line) in (1_u64..).zip(text.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            match trace(line) {
                Ok(trace) => self.traces.push(trace),
                Err(says) if self.faults.len() < MOST_FAULTS => {
                    self.faults
                        .push(format!("{}:{number}: {says}", path.display()));
                }
                Err(_) => {}
            }
        }
    }
}

/// Streams as they are found: names, parents, requests, and the pauses that a trace says itself.
#[derive(Default)]
struct Found {
    streams: Vec<(String, Option<usize>, Vec<Ask>)>,
    says: Vec<Vec<Option<Duration>>>,
}

fn trace(line: &str) -> Result<Trace, String> {
    let row: Value = serde_json::from_str(line).map_err(|error| format!("is no JSON: {error}"))?;
    let id = row.get("id").and_then(Value::as_str);
    let id = id.ok_or("has no id")?;
    let mut found = Found::default();
    found.follow(&row, id, None, 0)?;
    let block = row
        .get("block_size")
        .and_then(Value::as_u64)
        .unwrap_or(BLOCK);
    let block = u32::try_from(block).map_err(|_| "has a block_size that is no size")?;
    let says = |stream: usize, request: usize| *found.says.get(stream)?.get(request)?;
    let trace = Trace::new(id.to_owned(), block, found.streams.clone(), says);
    let mut trace = trace.map_err(|fault| fault.says.to_owned())?;
    trace.is_global = row.get("hash_id_scope").and_then(Value::as_str) == Some("global");
    Ok(trace)
}

impl Found {
    fn follow(
        &mut self,
        of: &Value,
        id: &str,
        parent: Option<usize>,
        deep: usize,
    ) -> Result<(), String> {
        let requests = of.get("requests").and_then(Value::as_array);
        let requests = requests.ok_or("has no list of requests")?;
        let is_group = |request: &&Value| request.get("requests").is_some_and(Value::is_array);
        let (groups, own): (Vec<&Value>, Vec<&Value>) = requests.iter().partition(is_group);
        let mut place = parent;
        if own.is_empty() && parent.is_none() {
            return Err("asks nothing itself".to_owned());
        }
        if !own.is_empty() {
            let mut asked: Vec<Ask> = own.iter().map(|own| ask(own)).collect::<Result<_, _>>()?;
            let begins = seconds(of, "t")
                .filter(|_| parent.is_some())
                .unwrap_or_default();
            for ask in &mut asked {
                // Older traces have the times of sub-agents from where these began.
                let is_absolute = ask.at + Duration::from_millis(1) >= begins;
                ask.at += if is_absolute { Duration::ZERO } else { begins };
            }
            let says = own.iter().map(|own| seconds(own, "think_time"));
            place = Some(self.streams.len());
            self.says.push(says.collect());
            self.streams.push((id.to_owned(), parent, asked));
        }
        for (nth, group) in groups.into_iter().enumerate() {
            if deep < MOST_DEEP {
                self.follow(group, &format!("{id}/{nth}"), place, deep + 1)?;
            }
        }
        Ok(())
    }
}

fn ask(request: &Value) -> Result<Ask, String> {
    let count = |name: &str| request.get(name).and_then(Value::as_u64);
    let tokens = |name: &str| count(name).and_then(|tokens| u32::try_from(tokens).ok());
    let blocks = request.get("hash_ids").and_then(Value::as_array);
    let blocks = blocks.map(Vec::as_slice).unwrap_or_default().iter();
    let blocks: Option<Vec<u64>> = blocks.map(Value::as_u64).collect();
    Ok(Ask {
        at: seconds(request, "t").unwrap_or_default(),
        took: seconds(request, "api_time").unwrap_or_default(),
        prompt: tokens("in")
            .ok_or("has a request without `in` tokens")?
            .max(1),
        output: tokens("out").unwrap_or(1).max(1),
        blocks: blocks.ok_or("has hash_ids that are no numbers")?,
        pause: Duration::ZERO,
    })
}

/// To the millisecond, as traces have their moments.
fn seconds(of: &Value, name: &str) -> Option<Duration> {
    let seconds = of.get(name)?.as_f64()?;
    let time = Duration::try_from_secs_f64(seconds.max(0.0)).ok()?;
    let ms = (time + Duration::from_micros(500)).as_millis();
    u64::try_from(ms).ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    //! The form of the published traces.

    use super::*;

    #[test]
    fn streams_have_their_parents_their_pauses_and_the_names_of_the_corpus() {
        let line = concat!(
            r#"{"id":"one","block_size":64,"hash_id_scope":"local","requests":["#,
            r#"{"t":0.0,"type":"s","in":100,"out":5,"hash_ids":[1,2],"api_time":2.0},"#,
            r#"{"type":"subagent","requests":[{"t":3.0,"in":80,"out":2,"hash_ids":[9],"api_time":1.0}]},"#,
            r#"{"t":9.5,"type":"s","in":180,"out":7,"hash_ids":[1,2,3],"api_time":1.0,"think_time":1.5}]}"#,
        );
        let trace = trace(line).expect("a trace");
        let names: Vec<&str> = trace.streams.iter().map(|stream| &*stream.id).collect();
        assert_eq!(
            (names, trace.block, trace.is_global),
            (vec!["one", "one/0"], 64, false)
        );
        let parent = trace.streams[1].parent.expect("a parent");
        assert_eq!(
            (parent.stream, parent.after, parent.before),
            (0, Some(0), Some(1))
        );
        let pauses: Vec<u128> = trace
            .streams
            .iter()
            .flat_map(|stream| &stream.requests)
            .map(|ask| ask.pause.as_millis())
            .collect();
        assert_eq!(pauses, [0, 1_500, 1_000]);
        assert_eq!(trace.streams[0].requests[1].blocks, [1, 2, 3]);
    }

    #[test]
    fn times_of_sub_agents_may_be_from_where_they_began() {
        let line = concat!(
            r#"{"id":"one","requests":[{"t":0.0,"in":100,"api_time":2.0},{"t":50.0,"type":"subagent","requests":["#,
            r#"{"t":0.5,"in":80},{"t":3.0,"in":90}]}]}"#,
        );
        let trace = trace(line).expect("a trace");
        let at: Vec<u128> = trace.streams[1]
            .requests
            .iter()
            .map(|ask| ask.at.as_millis())
            .collect();
        assert_eq!(at, [50_500, 53_000]);
    }

    #[test]
    fn a_line_that_says_too_little_is_told_of_and_the_others_are_read() {
        let mut read = Read::default();
        let text = "{\"requests\":[]}\n{\"id\":\"a\",\"requests\":[{\"in\":3}]}\n\nno\n{\"id\":\"b\",\"requests\":[{\"out\":1}]}\n";
        read.add(Path::new("x.jsonl"), text);
        assert_eq!(read.traces.len(), 1);
        let told: Vec<&str> = read
            .faults
            .iter()
            .map(|says| says.split(": ").next().unwrap_or(""))
            .collect();
        assert_eq!(told, ["x.jsonl:1", "x.jsonl:4", "x.jsonl:5"]);
        assert!(read.faults[2].contains("`in`"), "{:?}", read.faults);
    }
}
