//! The output of a command, shown as it comes.

use std::io::{self, IsTerminal as _};

use journeyman_sandbox::{LineCleaner, OutputChunk, OutputStream};

use super::args::ExecArgs;

/// The command's standard output and error. A terminal gets cleaned lines, other targets get raw
/// bytes.
pub(super) struct CommandOutput {
    stdout: OutputSink,
    stderr: OutputSink,
}

struct OutputSink {
    stream: OutputStream,
    shown: OutputForm,
    cleaner: LineCleaner,
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
        let sink =
            |stream, terminal| OutputSink { stream, shown: shown(terminal), cleaner: LineCleaner::default() };
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
                write_stream(chunk.stream, sink.cleaner.push(&chunk.bytes).into_bytes()).await
            }
        }
    }

    /// Writes remaining lines without a line feed.
    pub(super) async fn finish(self) -> io::Result<()> {
        for sink in [self.stdout, self.stderr] {
            let rest = sink.cleaner.finish();
            if !rest.is_empty() {
                write_stream(sink.stream, rest.into_bytes()).await?;
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
