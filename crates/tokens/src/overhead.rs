//! Conversations with a model whose template is not public: the text, and what the provider documents around it.
//!
//! The numbers are OpenAI's (openai-cookbook, "How to count tokens with tiktoken"): 3 for each message, 1 for a name,
//! 3 to prime the answer; for tools 7 for each function, 3 for its properties and 3 for each of them, -3 for an enum
//! and 3 for each of its values, and 12 for all tools together.
//! Invariant: the caller marks the count as approximate.
//! Not here: exact renderings (`prompts`).

use crate::vocabulary::Vocabulary;
use crate::words::Words;
use prompts::Uncountable;
use prompts::Word;
use prompts::conversation::{Conversation, Schema, Tool, Turn};
use prompts::tree::Tree;

const PER_MESSAGE: u64 = 3;
const PER_NAME: u64 = 1;
pub(crate) const PRIMING: u64 = 3;
const PER_FUNCTION: u64 = 7;
const FOR_PROPERTIES: u64 = 3;
const PER_PROPERTY: u64 = 3;
const OFF_AN_ENUM: u64 = 3;
const PER_ENUM_VALUE: u64 = 3;
const FOR_TOOLS: u64 = 12;

pub(crate) fn count(
    conversation: &Conversation<'_>,
    vocabulary: &Vocabulary,
    words: &Words,
) -> Result<u64, Uncountable> {
    let mut tokens = PRIMING;
    if let Some(text) = conversation.instructions {
        tokens += PER_MESSAGE + words.count(Word::System, vocabulary)? + vocabulary.count(text)?;
    }
    for turn in &conversation.turns {
        tokens += count_turn(turn, vocabulary, words)?;
    }
    tokens += for_tools(conversation.tools().len());
    for tool in conversation.tools() {
        tokens += count_tool(tool, vocabulary)?;
    }
    Ok(tokens)
}

/// For so many tools, beside what each takes.
pub(crate) const fn for_tools(tools: usize) -> u64 {
    if tools == 0 { 0 } else { FOR_TOOLS }
}

/// A turn and what stands around it.
pub(crate) fn count_turn(
    turn: &Turn<'_>,
    vocabulary: &Vocabulary,
    words: &Words,
) -> Result<u64, Uncountable> {
    let (role, content, name) = match turn {
        Turn::Instructions {
            role,
            content,
            name,
            ..
        } => (words.count(*role, vocabulary)?, content, name),
        Turn::Other {
            role,
            content,
            name,
        } => (vocabulary.count(role)?, content, name),
        Turn::User { content, name } => (words.count(Word::User, vocabulary)?, content, name),
        Turn::Assistant { content, name, .. } => {
            (words.count(Word::Assistant, vocabulary)?, content, name)
        }
        Turn::Answer { content, name, .. } => (words.count(Word::Tool, vocabulary)?, content, name),
    };
    let mut tokens = PER_MESSAGE + role;
    if let Some(name) = name {
        tokens += PER_NAME + vocabulary.count(name)?;
    }
    for text in content.texts() {
        tokens += vocabulary.count(text)?;
    }
    if let Turn::Assistant { calls, .. } = turn {
        for call in calls {
            tokens += PER_MESSAGE + vocabulary.count(&call.name)?;
            tokens += vocabulary.count(&call.arguments)?;
        }
    }
    Ok(tokens)
}

pub(crate) fn count_tool(tool: &Tool<'_>, vocabulary: &Vocabulary) -> Result<u64, Uncountable> {
    let about = tool.description.unwrap_or_default();
    let line = format!("{}:{}", tool.name, without_stop(about));
    let mut tokens = PER_FUNCTION + vocabulary.count(&line)?;
    let schema = tool.parameters.as_ref().map(Schema::tree);
    let Some(Tree::Map(properties)) = schema.and_then(|schema| schema.get("properties")) else {
        return Ok(tokens);
    };
    if !properties.is_empty() {
        tokens += FOR_PROPERTIES;
    }
    for (name, property) in properties {
        let kind = property.get_text("type").unwrap_or_default();
        let about = without_stop(property.get_text("description").unwrap_or_default());
        tokens += PER_PROPERTY + vocabulary.count(&format!("{name}:{kind}:{about}"))?;
        if let Some(values) = property.get("enum").and_then(Tree::list) {
            for value in values.iter().filter_map(Tree::text) {
                tokens += PER_ENUM_VALUE + vocabulary.count(value)?;
            }
            tokens = tokens.saturating_sub(OFF_AN_ENUM);
        }
    }
    Ok(tokens)
}

fn without_stop(text: &str) -> &str {
    text.strip_suffix('.').unwrap_or(text)
}
