/** The replay's thread: opens the database read-only, answers one question and reports its progress. */
import { readerDatabase } from '../../db/open.ts'
import { postgresReader } from '../../db/postgres/open.ts'
import { answerQuestion, type Question, type QuestionName } from '../proxy/replay/questions.ts'

export interface ToReplay {
  /** The path of the database file, or the URL of PostgreSQL. */
  path: string
  name: QuestionName
  question: Question<QuestionName>
}

export type FromReplay = { share: number } | { value: unknown } | { failure: string }

/**
 * Closes the database before answering: the answer ends the thread, and an open database would leave its write-ahead
 * log.
 */
const answered = async (data: ToReplay, report: (share: number) => void): Promise<unknown> => {
  const { db, close } = data.path.includes('://') ? postgresReader(data.path) : readerDatabase(data.path)
  try {
    return await answerQuestion(db, data, report)
  } finally {
    await close()
  }
}

const receive = async ({ data }: MessageEvent<ToReplay>): Promise<void> => {
  const post = (message: FromReplay) => self.postMessage(message)
  try {
    post({ value: await answered(data, (share) => post({ share })) })
  } catch (error) {
    post({ failure: String(error) })
  }
}

self.addEventListener('message', (message: MessageEvent<ToReplay>) => void receive(message))
