/** The replay's thread: opens the database read-only, answers one question and reports its progress. */
import { readerDatabase } from '../../db/open.ts'
import { answerQuestion, type Question, type QuestionName } from '../proxy/replay/questions.ts'

export interface ToReplay {
  /** The path of the database file. */
  path: string
  name: QuestionName
  question: Question<QuestionName>
}

export type FromReplay = { share: number } | { value: unknown } | { failure: string }

self.addEventListener('message', ({ data }: MessageEvent<ToReplay>) => {
  const post = (message: FromReplay) => self.postMessage(message)
  try {
    const { db } = readerDatabase(data.path)
    post({ value: answerQuestion(db, data, (share) => post({ share })) })
  } catch (error) {
    post({ failure: String(error) })
  }
})
