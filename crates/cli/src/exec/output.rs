//! The output of a command, shown as it comes.

use std::io::{self, IsTerminal as _};

use journeyman_sandbox::{OutputChunk, OutputStream, clean_output};

use super::args::ExecArgs;

/// Maximum length of a line that is shown in one piece, in bytes.
const MAX_UNBROKEN_LINE_BYTES: usize = 8 * 1024;

/// The command's standard output and error. A terminal gets cleaned lines, other targets get raw
/// bytes.
pub(super) struct CommandOutput {
    stdout: OutputSink,
    stderr: OutputSink,
}

struct OutputSink {
    stream: OutputStream,
    shown: OutputForm,
    /// The beginning of a line, where lines are cleaned.
    line: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputForm {
    Bytes,
    Cleaned,
    /// The report has the output.
    Hidden,
}

impl CommandOutput {
    pub(super) fn new(args: &ExecArgs) -> Self {
        let shown = |terminal: bool| match terminal {
            _ if args.json => OutputForm::Hidden,
            true if !args.raw => OutputForm::Cleaned,
            _ => OutputForm::Bytes,
        };
        let sink = |stream, terminal| OutputSink { stream, shown: shown(terminal), line: Vec::new() };
        Self {
            stdout: sink(OutputStream::Stdout, io::stdout().is_terminal()),
            stderr: sink(OutputStream::Stderr, io::stderr().is_terminal()),
        }
    }

    pub(super) async fn write_chunk(&mut self, chunk: OutputChunk) -> io::Result<()> {
        let sink = if chunk.stream == OutputStream::Stdout { &mut self.stdout } else { &mut self.stderr };
        match sink.shown {
            OutputForm::Hidden => Ok(()),
            OutputForm::Bytes => write_stream(chunk.stream, chunk.bytes).await,
            OutputForm::Cleaned => {
                sink.line.extend_from_slice(&chunk.bytes);
                let whole = sink.line.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
                let ready =
                    if sink.line.len() - whole > MAX_UNBROKEN_LINE_BYTES { sink.line.len() } else { whole };
                let lines: Vec<u8> = sink.line.drain(..ready).collect();
                write_stream(chunk.stream, clean_output(&lines).into_bytes()).await
            }
        }
    }

    /// Writes remaining lines without a line feed.
    pub(super) async fn finish(self) -> io::Result<()> {
        for sink in [self.stdout, self.stderr] {
            if !sink.line.is_empty() {
                write_stream(sink.stream, clean_output(&sink.line).into_bytes()).await?;
            }
        }
        Ok(())
    }
}

/// Writes on another thread, so that a blocked reader doesn't delay the command's time limit.
async fn write_stream(stream: OutputStream, bytes: Vec<u8>) -> io::Result<()> {
    let written = tokio::task::spawn_blocking(move || {
        let all = |out: &mut dyn io::Write| out.write_all(&bytes).and_then(|()| out.flush());
        match stream {
            OutputStream::Stdout => all(&mut io::stdout().lock()),
            OutputStream::Stderr => all(&mut io::stderr().lock()),
        }
    });
    written.await.map_err(io::Error::other)?
}
