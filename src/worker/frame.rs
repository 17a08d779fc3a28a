//! What passes between daemon and worker: a length of four bytes, little endian, and JSON.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::extract::Extraction;

/// A worker's first words.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of the program, so that an update in place can't mix two.
    pub version: String,
    /// Whether the system keeps files and network away from it.
    pub confined: bool,
}

/// A worker's answer to one request.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// A panic's message if there is no extraction.
    pub result: Result<Extraction, String>,
}

/// Puts a value into a frame.
///
/// # Errors
/// It is no JSON, or over 4 GiB of it.
pub fn encode(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, value)?;
    let len = u32::try_from(frame.len() - 4).map_err(io::Error::other)?;
    frame[..4].copy_from_slice(&len.to_le_bytes());
    Ok(frame)
}

/// Reads one frame; `None` at the end of the input.
///
/// # Errors
/// The input's, or what isn't the JSON of a `T`.
pub fn read<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<Option<T>> {
    let mut len = [0; 4];
    match input.read_exact(&mut len) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut body = vec![0; u32::from_le_bytes(len) as usize];
    input.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// Writes one frame.
///
/// # Errors
/// The output's.
pub fn write(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    output.write_all(&encode(value)?)?;
    output.flush()
}

/// Reads one frame of a worker, whose length it may lie about.
///
/// # Errors
/// The worker has ended, sends more than `max` bytes, or what isn't the JSON of a `T`.
pub async fn receive<T: DeserializeOwned>(
    input: &mut (impl AsyncRead + Unpin),
    max: usize,
) -> io::Result<T> {
    let len = input.read_u32_le().await? as usize;
    if len > max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("{len} bytes")));
    }
    let mut body = vec![0; len];
    input.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_goes_in_comes_out() {
        let answer = Answer { result: Ok(Extraction::Skipped("スキャン".into())) };
        let frame = encode(&answer).unwrap();
        assert_eq!(read::<Answer>(&mut &frame[..]).unwrap(), Some(answer));
        assert_eq!(read::<Answer>(&mut &[][..]).unwrap(), None);
        assert!(read::<Answer>(&mut &frame[..frame.len() - 1]).is_err());
        assert!(receive::<Answer>(&mut &frame[..], frame.len()).await.is_ok());
        let error = receive::<Answer>(&mut &frame[..], 8).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert!(receive::<Answer>(&mut &frame[..9], 4096).await.is_err());
    }
}
