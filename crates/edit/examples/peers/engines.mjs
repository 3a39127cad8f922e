// Engines of npm packages on the tasks of `mutations`: reads tasks, writes answers.
// `node engines.mjs NAME NODE_MODULES`, NAME one of gemini, pi, roo, agents.

import { once } from "node:events";
import { register } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [name, modules] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/${path}`).href);
const toLf = (text) => text.replaceAll("\r\n", "\n");
const asBefore = (before, text) => (before.includes("\r\n") ? text.replaceAll("\n", "\r\n") : text);

const engines = {
  // Files are read as LF and get their own line breaks back, as its edit tool does.
  async gemini() {
    const { calculateReplacement, getErrorReplaceResult } = await load("@google/gemini-cli-core/dist/src/tools/edit.js");
    // It tells its telemetry how it placed; there is none.
    const config = new Proxy({}, { get: () => () => undefined });
    return async (before, { search, replace }) => {
      const params = { file_path: "file", old_string: search, new_string: replace };
      const currentContent = toLf(before);
      const done = await calculateReplacement(config, { params, currentContent });
      const error = getErrorReplaceResult(params, done.occurrences, done.finalOldString, done.finalNewString);
      return error ? { error: error.display } : { text: asBefore(before, done.newContent) };
    };
  },
  async pi() {
    const { applyEditsToNormalizedContent } = await load("@mariozechner/pi-coding-agent/dist/core/tools/edit-diff.js");
    return async (before, { search, replace }) => {
      const edits = [{ oldText: search, newText: replace }];
      const { newContent } = applyEditsToNormalizedContent(toLf(before), edits, "file");
      return { text: asBefore(before, newContent) };
    };
  },
  async roo() {
    // The package leaves endings away, which its own runtime adds.
    const hook = `export async function resolve(name, context, next) {
      for (const ending of ["", ".js", "/index.js"]) {
        try { return await next(name + ending, context); } catch (error) { if (ending === "/index.js") throw error; }
      }
    }`;
    register(`data:text/javascript,${encodeURIComponent(hook)}`);
    const { multiSearchReplaceDiffStrategy } = await load("diff-apply/dist/index.js");
    return async (before, { search, replace }) => {
      const diffContent = `<<<<<<< SEARCH\n${search}\n=======\n${replace}\n>>>>>>> REPLACE`;
      const done = await multiSearchReplaceDiffStrategy.applyDiff({ originalContent: before, diffContent });
      return done.success ? { text: done.content } : { error: String(done.error ?? "failed").slice(0, 500) };
    };
  },
  async agents() {
    const { applyDiff } = await load("@openai/agents-core/dist/utils/applyDiff.mjs");
    return async (before, { patch }) => (patch === undefined ? null : { text: applyDiff(before, `@@\n${patch}`) });
  },
};

const engine = await engines[name]();
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const task = JSON.parse(line);
  const answers = [];
  for (const one of task.cases) {
    const before = one.files ? one.files[0] : task.before;
    try {
      answers.push(await engine(before, one));
    } catch (error) {
      answers.push({ error: String(error).slice(0, 500) });
    }
  }
  if (!process.stdout.write(`${JSON.stringify({ id: task.id, answers })}\n`)) await once(process.stdout, "drain");
}
