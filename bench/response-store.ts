/**
 * What stored responses take of the heap beside what the store counts: `bun bench/response-store.ts [conversations]`. Each
 * conversation has three steps of a message, a thought and a call with its output.
 */
import { heapStats } from 'bun:jsc'
import { ResponseStore } from '../src/proxy/responses-store/response-store.ts'
import type { StoredResponse } from '../src/proxy/responses-store/stored-response.ts'

const conversations = Number(process.argv[2] ?? 10_000)
const MIB = 1024 * 1024
const settings = { responseStoreMinutes: 60, responseStoreMiB: Number(process.argv[3] ?? 64) }
const store = new ResponseStore({ clock: { monotonic: () => performance.now() }, settings: () => settings })

const heapBytes = (): number => {
  Bun.gc(true)
  return heapStats().heapSize // with the memory outside that its objects own
}

const answer = (id: string) => ({
  id,
  object: 'response',
  created_at: 0,
  status: 'completed',
  instructions: 'Be brief. '.repeat(200),
  tools: [{ type: 'function', name: 'look', parameters: { type: 'object', description: 'x'.repeat(4000) } }],
  output: [
    { type: 'reasoning', id: `rs_${id}`, summary: [], encrypted_content: id.repeat(60) },
    { type: 'function_call', id: `fc_${id}`, call_id: `call_${id}`, name: 'look', arguments: '{"city":"Ghent"}' },
  ],
})

const before = heapBytes()
const began = performance.now()
for (let n = 0; n < conversations; n++) {
  let previous: StoredResponse | null = null
  for (const step of ['a', 'b', 'c']) {
    const id = `resp_${n}${step}`
    const text = JSON.stringify({ role: 'user', content: `${id} ${'word '.repeat(200)}` })
    const recording = store.record({
      scope: `key_${n % 50}`,
      previous,
      input: `[${text}]`,
      inputIds: [],
      instructions: [],
      itemIds: [],
      callIds: [],
    })
    const said = answer(id)
    recording?.finish(said, JSON.stringify(said))
    recording?.release()
    previous = store.get(`key_${n % 50}`, id)
  }
}
const seconds = (performance.now() - began) / 1000
const heap = heapBytes() - before
console.log(`${conversations} conversations of 3 responses in ${seconds.toFixed(2)} s, ${store.size} responses stored`)
console.log(`counted ${(store.bytes / MIB).toFixed(1)} MiB, heap ${(heap / MIB).toFixed(1)} MiB`)
