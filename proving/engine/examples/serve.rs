//! Runs an engine until the input ends: `cargo run -p engine --example serve -- 127.0.0.1:8000 gpt-oss-120b`.

use std::io::Read;

use engine::{EngineConfig, spawn_thread};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let listen = arguments
        .next()
        .unwrap_or_else(|| "127.0.0.1:0".to_owned())
        .parse()?;
    let models: Vec<String> = arguments.collect();
    let default = EngineConfig::default();
    let models = if models.is_empty() {
        default.models.clone()
    } else {
        models
    };
    let engine = spawn_thread(EngineConfig {
        listen,
        models,
        inspect: true,
        ..default
    })?;
    println!("engine at http://{}/v1", engine.addr());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    println!("{:?}", engine.stats());
    Ok(())
}
