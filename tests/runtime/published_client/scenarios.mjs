// What a program that was written for the published client does, and what it may expect.

import assert from "node:assert/strict";

import { context } from "./platform.mjs";

let count = 0;
const named = (word) => `${word}-${++count}`;
const open = ({ client, runtime }) => new client.Sandbox(context(), { RUNTIME: runtime });
const lower = ({ client, runtime }) => new client.SandboxClient({ baseUrl: runtime });
const stateless = "__DISABLE_SESSION__";

async function events({ client }, stream) {
  const found = [];
  for await (const event of client.parseSSEStream(stream)) found.push(event);
  return found;
}

async function next(iterator, wanted) {
  for (;;) {
    const { value, done } = await iterator.next();
    assert(!done, "the stream ended");
    if (wanted(value)) return value;
  }
}

const failure = async (work, check) => {
  await assert.rejects(work, (error) => {
    check(error);
    return true;
  });
};

export const scenarios = {
  async "the utilities answer"(given) {
    const { utils } = lower(given);
    assert.equal(await utils.ping(), "healthy");
    assert.match(await utils.getVersion(), /^\d+\.\d+\.\d+/);
    assert((await utils.getCommands()).includes("sh"));
  },

  async "a command runs in the default session"(given) {
    const box = open(given);
    const found = await box.exec("echo out; echo err >&2; false");
    assert.deepEqual([found.stdout, found.stderr, found.exitCode, found.success], ["out\n", "err\n", 1, false]);
  },

  async "the default session keeps its state"(given) {
    const box = open(given);
    await box.exec("cd /tmp && export KEPT=yes && greet() { echo hello $1; }");
    assert.equal((await box.exec("pwd; echo $KEPT; greet you")).stdout, "/tmp\nyes\nhello you\n");
  },

  async "a second client attaches to the session that is there"(given) {
    await open(given).exec("export SEEN=1");
    assert.equal((await open(given).exec("echo $SEEN")).stdout, "1\n");
  },

  async "sessions are made, used and deleted"(given) {
    const box = open(given);
    const id = named("session");
    const session = await box.createSession({ id, env: { GREETING: "hi", NOT: undefined }, cwd: "/tmp" });
    assert.equal((await session.exec('echo $GREETING "${NOT-unset}"; pwd')).stdout, "hi unset\n/tmp\n");
    await failure(box.createSession({ id }), (error) => {
      assert.equal(error.code, "SESSION_ALREADY_EXISTS");
      assert.equal(error.context.sessionId, id);
    });
    assert.equal((await box.deleteSession(id)).sessionId, id);
  },

  async "exit in a session is told with its code, and the next call gets a fresh shell"(given) {
    const box = open(given);
    const session = await box.createSession({ id: named("session") });
    await session.exec("export OLD=1");
    await failure(session.exec("exit 42"), (error) => {
      assert.equal(error.code, "SESSION_TERMINATED");
      assert.equal(error.exitCode ?? error.context.exitCode, 42);
    });
    assert.equal((await session.exec("echo [$OLD]")).stdout, "[]\n");
  },

  async "a timeout in a session says so"(given) {
    const box = open(given);
    const session = await box.createSession({ id: named("session") });
    await failure(session.exec("sleep 30", { timeout: 100 }), (error) => {
      assert.equal(error.code, "COMMAND_EXECUTION_ERROR");
      assert.match(error.message, /timeout/i);
    });
    await box.deleteSession(session.id);
  },

  async "variables and the directory of one call do not stay"(given) {
    const box = open(given);
    const found = await box.exec("echo $ONCE; pwd", { env: { ONCE: "x" }, cwd: "/" });
    assert.equal(found.stdout, "x\n/\n");
    assert.equal((await box.exec('echo "[$ONCE]"')).stdout, "[]\n");
  },

  async "without a session nothing is kept"(given) {
    const { commands } = lower(given);
    await commands.execute("export A=1; cd /", stateless);
    const found = await commands.execute("echo [$A]; exit 7", stateless);
    assert.deepEqual([found.stdout, found.exitCode, found.sessionId], ["[]\n", 7, undefined]);
    const late = await commands.execute("sleep 9", stateless, { timeoutMs: 50 });
    assert.equal(late.exitCode, 124);
    assert.match(late.stderr, /Command timed out after 50ms/);
  },

  async "a command streams"(given) {
    const box = open(given);
    const found = await events(given, await box.execStream("echo one; echo two >&2; exit 3"));
    assert.equal(found[0].type, "start");
    assert.deepEqual([found.at(-1).type, found.at(-1).exitCode], ["complete", 3]);
    const text = (type) => found.filter((event) => event.type === type).map((event) => event.data).join("");
    assert.deepEqual([text("stdout"), text("stderr")], ["one\n", "two\n"]);
  },

  async "exec calls back with output"(given) {
    const box = open(given);
    const parts = [];
    const found = await box.exec("echo a; echo b >&2", {
      stream: true,
      onOutput: (stream, data) => parts.push(`${stream}:${data}`),
    });
    assert.equal(found.exitCode, 0);
    assert.deepEqual(parts.sort(), ["stderr:b\n", "stdout:a\n"]);
  },

  async "a process is started, listed, read and killed"(given) {
    const box = open(given);
    const id = named("process");
    const process = await box.startProcess("echo ready; exec sleep 300", { processId: id });
    assert.equal(process.id, id);
    assert.equal(typeof process.pid, "number");
    await process.waitForLog("ready", 10_000);
    assert((await box.listProcesses()).some((each) => each.id === id && each.status === "running"));
    assert.equal((await process.getLogs()).stdout, "ready\n");
    await process.kill();
    assert.equal(await process.getStatus(), "killed");
    await failure(box.killProcess(id), (error) => assert.equal(error.code, "COMMAND_NOT_FOUND"));
  },

  async "a process is waited for"(given) {
    const box = open(given);
    const process = await box.startProcess("sleep 0.2; echo done; exit 5");
    assert.equal((await process.waitForExit(10_000)).exitCode, 5);
    assert.equal(await process.getStatus(), "failed");
    assert.equal((await box.getProcess(process.id)).exitCode, 5);
    assert.equal(await box.getProcess("no-such-process"), null);
  },

  async "a log line that matches is found"(given) {
    const process = await open(given).startProcess("for i in 1 2 3; do echo line $i; done; sleep 300");
    const found = await process.waitForLog(/line (\d)$/m, 10_000);
    assert.match(found.line, /line \d/);
    await process.kill();
  },

  async "a process that ends before it is ready is told"(given) {
    const process = await open(given).startProcess("echo no >&2; exit 3");
    await failure(process.waitForLog("never", 10_000), (error) => {
      assert.equal(error.code, "PROCESS_EXITED_BEFORE_READY");
    });
  },

  async "a port is waited for"(given) {
    const box = open(given);
    const port = 20_000 + (process.pid % 20_000);
    const server = await box.startProcess(`python3 -m http.server ${port} --bind 127.0.0.1`, { cwd: "/tmp" });
    await server.waitForPort(port, { timeout: 20_000 });
    await server.waitForPort(port, { timeout: 20_000, mode: "tcp" });
    await server.kill();
  },

  async "a port that nobody opens is told when its process ends"(given) {
    const server = await open(given).startProcess("sleep 0.2; exit 4");
    await failure(server.waitForPort(64_999, { timeout: 20_000 }), (error) => {
      assert.equal(error.code, "PROCESS_EXITED_BEFORE_READY");
    });
  },

  async "a log stream replays, follows and ends"(given) {
    const box = open(given);
    const process = await box.startProcess("echo first; sleep 0.3; echo second");
    const found = await events(given, await box.streamProcessLogs(process.id));
    assert.equal(found[0].type, "process_info");
    assert.equal(found.filter((event) => event.type === "stdout").map((event) => event.data).join(""), "first\nsecond\n");
    assert.deepEqual([found.at(-1).type, found.at(-1).exitCode], ["exit", 0]);
  },

  async "all processes are killed"(given) {
    const box = open(given);
    await Promise.all([1, 2, 3].map(() => box.startProcess("sleep 300")));
    assert((await box.killAllProcesses()) >= 3);
    assert.equal(await box.killAllProcesses(), 0);
  },

  async "a process knows the state of its session and changes nothing in it"(given) {
    const box = open(given);
    const session = await box.createSession({ id: named("session") });
    await session.exec("cd /tmp; export V=1; f() { echo from f; }");
    const process = await session.startProcess("pwd; echo $V; f; export V=2; cd /");
    await process.waitForExit(10_000);
    assert.equal((await process.getLogs()).stdout, "/tmp\n1\nfrom f\n");
    assert.equal((await session.exec("pwd; echo $V")).stdout, "/tmp\n1\n");
    await box.deleteSession(session.id);
  },

  async "files are written, read, listed, moved and deleted"(given) {
    const box = open(given);
    const folder = `${given.workspace}/${named("folder")}`;
    await box.mkdir(`${folder}/deep/er`, { recursive: true });
    await box.writeFile(`${folder}/a.txt`, "héllo\n");
    const read = await box.readFile(`${folder}/a.txt`);
    assert.deepEqual([read.content, read.encoding, read.mimeType, read.size], ["héllo\n", "utf-8", "text/plain", 7]);
    await box.renameFile(`${folder}/a.txt`, `${folder}/b.txt`);
    await box.moveFile(`${folder}/b.txt`, `${folder}/deep`);
    assert.equal((await box.exists(`${folder}/deep/b.txt`)).exists, true);
    const listed = await box.listFiles(folder, { recursive: true });
    assert.deepEqual(listed.files.map((file) => file.relativePath).sort(), ["deep", "deep/b.txt", "deep/er"]);
    assert.deepEqual(
      Object.keys(listed.files[0]).filter((key) => key !== "x").sort().filter((key) =>
        ["absolutePath", "mode", "modifiedAt", "name", "permissions", "relativePath", "size", "type"].includes(key)),
      ["absolutePath", "mode", "modifiedAt", "name", "permissions", "relativePath", "size", "type"],
    );
    await box.deleteFile(`${folder}/deep/b.txt`);
    await failure(box.readFile(`${folder}/deep/b.txt`), (error) => assert.equal(error.code, "FILE_NOT_FOUND"));
    await failure(box.deleteFile(folder), (error) => assert.equal(error.code, "IS_DIRECTORY"));
  },

  async "bytes survive"(given) {
    const box = open(given);
    const path = `${given.workspace}/${named("bytes")}.bin`;
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
    await box.writeFile(path, bytes.toString("base64"), { encoding: "base64" });
    const read = await box.readFile(path);
    assert.equal(read.encoding, "base64");
    assert.deepEqual(Buffer.from(read.content, "base64"), bytes);
    await failure(box.writeFile(path, "not base64!", { encoding: "base64" }), (error) => {
      assert.equal(error.code, "VALIDATION_FAILED");
    });
  },

  async "a large file streams"(given) {
    const box = open(given);
    const path = `${given.workspace}/${named("large")}`;
    await box.exec(`head -c 3000000 /dev/urandom > ${path}; printf é >> ${path}`);
    const { content } = await given.client.collectFile(await box.readFileStream(path));
    const length = typeof content === "string" ? Buffer.byteLength(content) : content.byteLength;
    assert.equal(length, 3_000_002);
  },

  async "relative paths begin where the session is"(given) {
    const box = open(given);
    const session = await box.createSession({ id: named("session") });
    await session.exec("cd $(mktemp -d) && pwd");
    await session.writeFile("here.txt", "x");
    assert.equal((await session.exec("cat here.txt")).stdout, "x");
    await box.deleteSession(session.id);
  },

  async "a repository is cloned"(given) {
    const box = open(given);
    const origin = `${given.workspace}/${named("origin")}`;
    const made = await box.exec(
      `git init -q -b trunk ${origin} && cd ${origin} && echo 1 > a && git add a ` +
        "&& git -c user.name=n -c user.email=e@x commit -qm one && git tag v1; cd -",
    );
    assert.equal(made.exitCode, 0, made.stderr);
    const found = await box.gitCheckout(origin, { targetDir: `${origin}-clone`, depth: 1 });
    assert.equal(found.branch, "trunk");
    assert.equal((await box.exec(`cat ${origin}-clone/a`)).stdout, "1\n");
    await failure(box.gitCheckout(origin, { targetDir: `${origin}-other`, branch: "no-such" }), (error) => {
      assert.equal(error.code, "GIT_BRANCH_NOT_FOUND");
    });
  },

  async "a terminal shows what is typed into it"(given) {
    const box = open(given);
    const id = named("terminal");
    await box.createSession({ id });
    const request = new Request("http://localhost/", { headers: { Upgrade: "websocket" } });
    const { status, webSocket } = await given.client.proxyTerminal(box, id, request, { cols: 100, rows: 30 });
    assert.equal(status, 101);
    let shown = "";
    const decoder = new TextDecoder();
    const saw = new Promise((found, failed) => {
      webSocket.onmessage = ({ data }) => {
        if (typeof data !== "string") shown += decoder.decode(data, { stream: true });
        if (shown.includes("<100 30>")) found();
      };
      webSocket.onclose = () => failed(new Error(`the terminal closed after ${JSON.stringify(shown)}`));
    });
    webSocket.send(new TextEncoder().encode('set -- $(stty size); echo "<$2 $1>"\n'));
    await saw;
    webSocket.close();
    await box.deleteSession(id);
  },

  async "a directory is watched"(given) {
    const box = open(given);
    const folder = `${given.workspace}/${named("watched")}`;
    await box.mkdir(folder);
    const stream = await box.watch(folder);
    const seen = given.client.parseSSEStream(stream)[Symbol.asyncIterator]();
    await box.writeFile(`${folder}/new.txt`, "x");
    const event = await next(seen, (each) => each.type === "event" && each.path.endsWith("/new.txt"));
    assert.equal(event.isDirectory, false);
    await seen.return();
  },

  async "changes are asked for"(given) {
    const box = open(given);
    const folder = `${given.workspace}/${named("checked")}`;
    await box.mkdir(folder);
    const first = await box.checkChanges(folder);
    assert.deepEqual([first.status, first.version.split(":")[1]], ["unchanged", "0"]);
    await box.writeFile(`${folder}/new.txt`, "x");
    for (;;) {
      const later = await box.checkChanges(folder, { since: first.version });
      if (later.status === "changed") break;
      assert.equal(later.status, "unchanged");
    }
    assert.equal((await box.checkChanges(folder, { since: "watch-1-1:0" })).status, "resync");
  },

  async "an archive of a directory is made and put back"(given) {
    const { backup, utils, commands } = lower(given);
    const folder = `/tmp/${named("backed-up")}-${process.pid}`;
    const session = `__sandbox_backup_${named("backup")}`;
    await utils.createSession({ id: session, cwd: "/" });
    await commands.execute(`mkdir -p ${folder}/sub && echo 1 > ${folder}/sub/a && ln -s a ${folder}/sub/l`, stateless);
    const archive = `/var/backups/${named("archive")}-${process.pid}.sqsh`;
    const made = await backup.createArchive(folder, archive, session);
    assert(made.sizeBytes > 0);
    await commands.execute(`rm -rf ${folder}/sub; echo 2 > ${folder}/other`, stateless);
    await backup.restoreArchive(folder, archive, session);
    const found = await commands.execute(`cd ${folder} && ls && cat sub/l; rm -rf ${folder} ${archive}`, stateless);
    assert.equal(found.stdout, "sub\n1\n");
    await failure(backup.createArchive("/etc", archive, session), (error) => {
      assert.equal(error.code, "INVALID_BACKUP_CONFIG");
    });
    await utils.deleteSession(session);
  },
};
