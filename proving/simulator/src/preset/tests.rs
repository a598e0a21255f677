//! Presets that come with the program, and faults by their place.

use super::*;

const SMALL: &str = r#"
name = "small"
model = "m"
source = "made up"

[scheduler]
max_num_seqs = 8
max_num_batched_tokens = 64
max_model_len = 128

[kv]
block_size = 16
blocks = 32

[step.prefill]
base_ms = 1.0
per_token_us = 2.0
per_pair_ns = 3.0

[step.decode]
base_ms = 1.0
per_sequence_us = 2.0
per_context_token_ns = 3.0
"#;

#[test]
fn every_preset_that_comes_with_the_program_reads_and_writes_the_same() {
    for name in names() {
        let preset = Preset::named(name).unwrap();
        assert_eq!(preset.name, name);
        let again = Preset::parse(&preset.to_toml(), "again").unwrap();
        assert_eq!(again, preset);
    }
}

#[test]
fn what_a_file_leaves_out_is_as_in_vllm() {
    let scheduler = Preset::parse(SMALL, "small").unwrap().scheduler;
    assert!(scheduler.reserve_full_prompt && scheduler.async_scheduling);
    assert!(scheduler.kv.prefix_caching);
}

#[test]
fn an_error_names_its_line_or_member() {
    let cases = [
        ("blocks = 32", "blocks = 1", "f: kv.blocks: is less than 2"),
        (
            "block_size = 16",
            "block_size = 0",
            "f: kv.block_size: is 0",
        ),
        ("block_size = 16", "block_size = -1", "f:12: "),
        (
            "block_size = 16",
            "block_sizes = 16",
            "f:12: unknown field `block_sizes`",
        ),
        (
            "per_pair_ns = 3.0",
            "per_pair_ns = nan",
            "f: step.prefill.per_pair_ns: NaN",
        ),
        (
            "max_num_seqs = 8",
            "max_num_seqs = 80",
            "f: scheduler.max_num_batched_tokens: is less",
        ),
        (
            "block_size = 16",
            "block_size = 65537",
            "f: kv.block_size: is more than 65536",
        ),
        (
            "per_context_token_ns = 3.0",
            "",
            "f: step.decode: needs either",
        ),
        ("model = \"m\"", "model = ", "f:3: "),
    ];
    for (from, to, says) in cases {
        assert!(SMALL.contains(from));
        let error = Preset::parse(&SMALL.replacen(from, to, 1), "f")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(says), "{to}: {error}");
    }
    let decode = SMALL.find("[step.decode]").unwrap();
    let table = "[step.decode.table]\nsequences = [1, 2]\ncontexts = [1, 2]\nms = [[1, 2], [1]]\n";
    let error = Preset::parse(&format!("{}{table}", &SMALL[..decode]), "f").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("f: step.decode.table: ms[1]: has 1 values"),
        "{error}"
    );
}

#[test]
fn an_unknown_name_is_answered_with_the_names_there_are() {
    let error = Preset::named("no-such").unwrap_err().to_string();
    assert!(
        error.contains("no-such") && error.contains("gpt-oss-120b.h100x4"),
        "{error}"
    );
}
