//! Names as recordings have them.

use super::*;

#[test]
fn models_and_gpus_are_found_by_the_names_that_vllm_and_the_driver_give() {
    let llama = Model::named("meta-llama/Llama-3.1-8B-Instruct").expect("it is known");
    assert!((llama.kv_bytes_per_token() - 131_072.0).abs() < 0.5);
    let qwen = Model::named("Qwen/Qwen3-30B-A3B-Instruct-2507").expect("it is known");
    assert!(qwen.has_experts() && (qwen.kv_bytes_per_token() - 98_304.0).abs() < 0.5);
    let server = Gpu::named("NVIDIA RTX PRO 6000 Blackwell Server Edition");
    assert_ne!(
        server,
        Gpu::named("NVIDIA RTX PRO 6000 Blackwell Workstation Edition")
    );
    assert_eq!(Gpu::named("NVIDIA H100 80GB HBM3"), Gpu::named("h100"));
    for other in [
        "own/model",
        "Qwen/Qwen3-32B-AWQ",
        "RedHatAI/Llama-3.1-8B-FP8",
    ] {
        assert_eq!(Model::named(other), None, "{other}");
    }
    for other in ["NVIDIA RTX A1000", "NVIDIA T400", "Tesla P40"] {
        assert_eq!(Gpu::named(other), None, "{other}");
    }
    assert_eq!(Gpu::named("cpu"), None);
}

#[test]
fn a_name_that_holds_another_is_found_before_it() {
    for (i, (name, _)) in GPUS.iter().enumerate() {
        let earlier = GPUS[..i].iter().find(|(part, _)| contains(name, part));
        assert_eq!(earlier, None, "{name} is never found");
    }
    for (i, (name, _)) in MODELS.iter().enumerate() {
        let earlier = MODELS[..i].iter().find(|(part, _)| contains(name, part));
        assert_eq!(earlier, None, "{name} is never found");
    }
}

#[test]
fn experts_are_read_as_far_as_tokens_use_them() {
    let qwen = Model::named("Qwen3-30B-A3B").and_then(|model| model.experts());
    let qwen = qwen.expect("it has experts");
    assert!((0.94..0.96).contains(&qwen.share), "{qwen:?}");
    let read = |tokens| qwen.weights_read(tokens);
    assert!((0.05..0.15).contains(&read(1)), "one token: {}", read(1));
    assert!((0.5..0.65).contains(&read(16)), "16 tokens: {}", read(16));
    assert!(read(200) > 0.999);
    assert_eq!(
        Model::named("Qwen3-32B").and_then(|model| model.experts()),
        None
    );
}
