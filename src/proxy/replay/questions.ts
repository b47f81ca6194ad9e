/** What the replay thread computes, by name. */
import type { Db } from '../../../db/commit.ts'
import { compareStrategies } from './compare-strategies.ts'
import { forecast } from './forecast.ts'
import { planStarts } from './plan-starts.ts'

const ANSWERS = {
  strategies: compareStrategies,
  forecast,
  plan: planStarts,
} satisfies Record<string, (db: Db, question: never, onProgress: (share: number) => void) => Promise<unknown>>

type Answers = typeof ANSWERS
export type QuestionName = keyof Answers
/** They and the answers are passed between threads by structured clone. */
export type Question<Name extends QuestionName> = Parameters<Answers[Name]>[1]
export type AnswerTo<Name extends QuestionName> = Awaited<ReturnType<Answers[Name]>>

/** `onProgress` gets the finished share, 0 to 1. */
export const answerQuestion = <Name extends QuestionName>(
  db: Db,
  { name, question }: { name: Name; question: Question<Name> },
  onProgress: (share: number) => void,
): Promise<AnswerTo<Name>> => {
  // as: not inferred through the index
  const run = ANSWERS[name] as unknown as (...args: [Db, Question<Name>, typeof onProgress]) => Promise<AnswerTo<Name>>
  return run(db, question, onProgress)
}
