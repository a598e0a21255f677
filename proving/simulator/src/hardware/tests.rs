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
    assert_eq!(Model::named("own/model"), None);
    assert_eq!(Gpu::named("cpu"), None);
}

#[test]
fn a_name_that_holds_another_is_found_before_it() {
    for (i, (name, _)) in GPUS.iter().enumerate() {
        let earlier = GPUS[..i].iter().find(|(part, _)| name.contains(part));
        assert_eq!(earlier, None, "{name} is never found");
    }
    for (i, (name, _)) in MODELS.iter().enumerate() {
        let earlier = MODELS[..i].iter().find(|(part, _)| name.contains(part));
        assert_eq!(earlier, None, "{name} is never found");
    }
}
