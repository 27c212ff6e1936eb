// Written by `wire hooks install pi`, and written anew by it: changes of your own would be lost.
//
// Asks `wire hook pi EVENT` what this session is to be told, hands it over with the turn that begins, and wakes an idle
// session. Whatever fails here fails without a sound: see `wire doctor`.
import { spawn, spawnSync } from "node:child_process"
import { randomUUID } from "node:crypto"

const RUNTIME = "pi"

// ask.js

function askNow(directory, event, told) {
  const input = JSON.stringify(told)
  const done = spawnSync("wire", ["hook", RUNTIME, event], { cwd: directory, input, timeout: PATIENCE, encoding: "utf8" })
  try {
    return done.stdout?.trim() ? String(JSON.parse(done.stdout).text ?? "") : ""
  } catch {
    return ""
  }
}

export default function (pi) {
  let id = randomUUID()
  let directory = process.cwd()
  let begun = false
  let continued = false
  let waiter = null
  let over = false

  const told = (more = {}) => ({ session_id: id, cwd: directory, ...more })

  function wait() {
    if (waiter || over) return
    const asked = ask(directory, "wait", told(), 0)
    waiter = asked.child
    asked.child?.unref?.()
    asked.child?.stdout?.unref?.()
    asked.text.then((text) => {
      waiter = null
      if (text && !over) pi.sendUserMessage(text, { deliverAs: "followUp" })
    })
  }

  pi.on("session_start", async (_event, ctx) => {
    id = ctx?.sessionManager?.getSessionId?.() ?? id
    directory = ctx?.cwd ?? directory
    begun = false
    over = false
  })

  pi.on("before_agent_start", async () => {
    const text = await ask(directory, begun ? "prompt" : "session-start", told()).text
    begun = true
    if (text) return { message: { customType: "wire", content: text, display: true } }
  })

  // A headless run is over with the model's last answer, whatever an event still waits for. What must be answered is
  // asked for without waiting there, and stands in the queue when the run looks whether there is more to do.
  pi.on("message_end", (event, ctx) => {
    const message = event?.message
    if (ctx?.hasUI !== false || message?.role !== "assistant" || message?.stopReason !== "stop") return
    const text = askNow(directory, "stop", told({ stop_hook_active: continued }))
    continued = Boolean(text)
    if (text) pi.sendUserMessage(text, { deliverAs: "followUp" })
  })

  pi.on("agent_end", async (_event, ctx) => {
    if (ctx?.hasUI === false) return
    const text = await ask(directory, "stop", told({ stop_hook_active: continued })).text
    continued = Boolean(text)
    if (text) pi.sendUserMessage(text, { deliverAs: "followUp" })
    else wait()
  })

  pi.on("session_shutdown", async () => {
    over = true
    waiter?.kill()
    await ask(directory, "session-end", told()).text
  })
}
