// Written by `wire hooks install opencode`, and written anew by it: changes of your own would be lost.
//
// Asks `wire hook opencode EVENT` what this session is to be told. What it was told stays in the system text of the
// session's calls; an idle session is woken by a prompt. Whatever fails here fails without a sound: see `wire doctor`.
import { spawn } from "node:child_process"

const RUNTIME = "opencode"
// `opencode run` ends with the session's turn: what it is given then stands in the session, and no model reads it.
const ENDS = process.argv.slice(2).includes("run")
const KEPT = 24_000 // characters of earlier texts in the system text

// ask.js

export const WirePlugin = async ({ client, directory }) => {
  const sessions = new Map()
  const children = new Set() // sessions that a session started: what they are told, it would not see
  let latest = null

  function session(id) {
    if (!sessions.has(id)) sessions.set(id, { texts: [], begun: false, continued: false, waiter: null })
    return sessions.get(id)
  }

  async function tell(id) {
    const one = session(id)
    const event = one.begun ? "prompt" : "session-start"
    one.begun = true
    const text = await ask(directory, event, { session_id: id, cwd: directory }).text
    if (text) one.texts.push(text)
    while (one.texts.length > 1 && one.texts.join("").length > KEPT) one.texts.shift()
    return one.texts
  }

  async function prompt(id, text) {
    await client.session.promptAsync({ path: { id }, body: { parts: [{ type: "text", text }] } })
  }

  function wait(id) {
    const one = session(id)
    if (one.waiter) return
    const asked = ask(directory, "wait", { session_id: id, cwd: directory }, 0)
    one.waiter = asked.child
    asked.child?.unref?.()
    asked.text.then(async (text) => {
      one.waiter = null
      if (text) await prompt(id, text).catch(() => {})
    })
  }

  async function idle(id) {
    const one = session(id)
    const told = { session_id: id, cwd: directory, stop_hook_active: one.continued }
    const text = await ask(directory, "stop", told).text
    one.continued = Boolean(text)
    if (text) await prompt(id, text).catch(() => {})
    else wait(id)
  }

  process.on("exit", () => {
    for (const one of sessions.values()) one.waiter?.kill()
  })

  return {
    "chat.message": async (input) => {
      latest = input?.sessionID ?? latest
    },
    "experimental.chat.system.transform": async (input, output) => {
      const id = input?.sessionID ?? latest
      if (id && !children.has(id)) output.system.push(...(await tell(id)))
    },
    event: async ({ event }) => {
      const id = event?.properties?.sessionID ?? event?.properties?.info?.id
      if (!id) return
      // A message's `info` has a parent as well: the message that it answers.
      const started = event.type.startsWith("session.") && event.properties.info?.parentID
      if (started) children.add(event.properties.info.id)
      if (event.type === "session.idle" && sessions.get(id)?.begun && !ENDS) await idle(id)
      if (event.type === "session.deleted" && sessions.has(id)) {
        sessions.delete(id)
        await ask(directory, "session-end", { session_id: id, cwd: directory }).text
      }
    },
  }
}
