//! ToolBench's raw answers: one file each, with the histories of its decisions unrolled.
//!
//! `answer_generation.train_messages[k]` is the history up to and with decision *k*. Histories need not be prefixes of
//! later ones: the search asks for another try by a user message that is gone from what comes after.
//! Not here: the conversations that ToolLLaMA is trained on (`toolllama`), roles that engines refuse (`repair`).

use super::chat::{message, tools};
use super::unrolled::Unrolled;
use super::whole::Whole;
use super::{Fault, Tally};
use crate::conversation::{Conversation, Message};
use crate::json::Json;

const KNOWN: &[&str] = &[
    "win",
    "tree",
    "forward_args",
    "compare_candidates",
    "answer_generation",
    "trys",
    "task",
];
const KNOWN_ANSWER: &[&str] = &[
    "valid_data",
    "query",
    "final_answer",
    "finish_type",
    "query_count",
    "total_tokens",
    "function",
    "chain",
    "train_messages",
];

pub(super) const READER: Whole = Whole {
    name: "toolbench",
    sessions: |file, name, tally| vec![session(file, name, tally)],
};

fn session(mut file: Json, name: &str, tally: &mut Tally) -> Result<Conversation, Fault> {
    tally.unknown_members("file", &file, KNOWN);
    let mut answer = file.take("answer_generation").unwrap_or_default();
    if !answer.is_object() {
        let says = "has no answer_generation, so it is no raw answer of ToolBench";
        return Err(Fault::broken("no_answer_generation", says));
    }
    tally.unknown_members("answer_generation", &answer, KNOWN_ANSWER);
    let histories = match answer.take("train_messages") {
        Some(Json::Array(all)) => all,
        None if answer.get("valid_data").and_then(Json::as_bool) == Some(false) => {
            let says = "its valid_data is false and it has no train_messages";
            return Err(Fault::skipped("valid_data_false", says));
        }
        _ => {
            let says = "has no train_messages, though its valid_data is not false";
            return Err(Fault::broken("no_train_messages", says));
        }
    };
    let mut session = Unrolled::default();
    for history in histories {
        session.add(messages(history, tally)?, tally)?;
    }
    let functions = tools(answer.take("function"), tally);
    session.finish(name.to_owned(), functions)
}

fn messages(history: Json, tally: &mut Tally) -> Result<Vec<Message>, Fault> {
    let Json::Array(history) = history else {
        let says = "one of its train_messages is no list";
        return Err(Fault::broken("no_messages", says));
    };
    history.into_iter().map(|one| message(one, tally)).collect()
}
