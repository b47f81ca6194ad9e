/** The thread that checkpoints the write-ahead log, so that the event loop does not wait for the disk. */
import { checkpoint } from '../../db/checkpoint.ts'

/** Answers each path with null, or with why the checkpoint failed. */
self.addEventListener('message', ({ data: path }: MessageEvent<string>) => {
  try {
    checkpoint(path)
    self.postMessage(null)
  } catch (error) {
    self.postMessage(String(error))
  }
})
