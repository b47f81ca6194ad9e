/** The thread that carries the write-ahead log over: it waits for the disk in the place of the loop. */
import { checkpoint } from '../db/checkpoint.ts'

/** Answers each path it is sent with null, or with why the checkpoint failed. */
self.addEventListener('message', ({ data: path }: MessageEvent<string>) => {
  try {
    checkpoint(path)
    self.postMessage(null)
  } catch (error) {
    self.postMessage(String(error))
  }
})
