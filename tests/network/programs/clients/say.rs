//! say HOST PORT
use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let mut stream = std::net::TcpStream::connect(format!("{}:{}", words[1], words[2]))?;
    stream.write_all(b"GET /say HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    print!("{answer}");
    Ok(())
}
