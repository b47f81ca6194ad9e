/** Replays on the calling thread, for tests with a database in memory. */
import type { Db } from '../../db/commit.ts'
import { answerQuestion } from '../../src/proxy/replay/questions.ts'
import type { StartReplay } from '../../src/threads/replayer.ts'

export const inlineReplays =
  (db: Db): StartReplay =>
  (call, report) => {
    let hasStopped = false
    const run = async () => {
      if (hasStopped) return
      report({ share: 0.5 })
      try {
        report({ value: structuredClone(await answerQuestion(db, call, () => {})) })
      } catch (error) {
        report({ failure: String(error) })
      }
    }
    queueMicrotask(() => void run())
    return () => {
      hasStopped = true
    }
  }
