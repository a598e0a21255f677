//! Trajectories of OpenHands on SWE-rebench: rows of Parquet with structs that are padded.
//!
//! A column has one struct for all messages, and one for the schemas of all tools, so that each has every member that
//! any has, most of them `null`: those are dropped.
//! Not here: messages themselves (`chat`).

use super::chat::{linear, messages, tools};
use super::rows::{Rows, said};
use super::{Fault, Tally};
use crate::conversation::Conversation;
use crate::json::Json;

pub(super) const READER: Rows = Rows {
    name: "openhands",
    columns: &["trajectory_id", "trajectory", "tools"],
    passed: &[
        "instance_id",
        "repo",
        "model_patch",
        "exit_status",
        "resolved",
        "gen_tests_correct",
        "pred_passes_gen_tests",
    ],
    names: &["trajectory_id"],
    name_of: |row, fallback| said(row, &["trajectory_id"]).unwrap_or_else(|| fallback.to_owned()),
    session: |row, name, tally| vec![session(row, name, tally)],
};

fn session(mut row: Json, name: &str, tally: &mut Tally) -> Result<Conversation, Fault> {
    row.drop_nulls();
    let tools = tools(row.take("tools"), tally);
    let (messages, beside) = messages(row.take("trajectory").unwrap_or_default(), tally)?;
    linear(name.to_owned(), tools, messages, &beside)
}
