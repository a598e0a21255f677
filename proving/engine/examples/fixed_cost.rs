//! CPU time that the fixed server spends on a request, by the kernel's account of its thread (Linux).
//!
//! `cargo run --release -p engine --example fixed_cost -- <connections> <requests>`

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use engine::fixed::{FixedConfig, spawn_thread};

const REQUEST: &[u8] = b"POST /v1/chat/completions HTTP/1.1\r\nhost: engine.local:8000\r\nauthorization: Bearer sk-0123456789\r\n\
    content-type: application/json\r\naccept: application/json\r\nuser-agent: fixed-cost\r\ncontent-length: 96\r\n\r\n\
    {\"model\":\"fixed\",\"messages\":[{\"role\":\"user\",\"content\":\"How many requests can this one carry?\"}]}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<usize>());
    let connections = arguments.next().transpose()?.unwrap_or(32);
    let requests = arguments.next().transpose()?.unwrap_or(200_000);
    let server = spawn_thread(FixedConfig::default())?;
    let mut clients = (0..connections)
        .map(|_| TcpStream::connect(server.addr()))
        .collect::<Result<Vec<_>, _>>()?;
    clients.iter().try_for_each(|c| c.set_nodelay(true))?;
    let mut answer = vec![0; 64 << 10];
    clients[0].write_all(REQUEST)?;
    let answer_bytes = clients[0].read(&mut answer)?;
    let (before, began) = (cpu_ns()?, Instant::now());
    let rounds = requests / connections;
    for _ in 0..rounds {
        for client in &mut clients {
            client.write_all(REQUEST)?;
        }
        for client in &mut clients {
            client.read_exact(&mut answer[..answer_bytes])?;
        }
    }
    let (spent, took) = (cpu_ns()? - before, began.elapsed());
    let done = rounds * connections;
    println!(
        "{done} requests on {connections} connections in {took:.2?}: {:.2} us CPU a request, {:.0} a second",
        spent as f64 / 1e3 / done as f64,
        done as f64 / took.as_secs_f64()
    );
    Ok(())
}

/// Time on a CPU of the thread named `engine-fixed`.
fn cpu_ns() -> Result<u64, Box<dyn std::error::Error>> {
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if std::fs::read_to_string(task.join("comm"))?.trim() == "engine-fixed" {
            let stat = std::fs::read_to_string(task.join("schedstat"))?;
            return Ok(stat
                .split(' ')
                .next()
                .ok_or("an empty schedstat")?
                .parse()?);
        }
    }
    Err("no thread engine-fixed".into())
}
