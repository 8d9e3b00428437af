// What a search finds first: pages for users, design notes last.
const DESIGN = /^(adr|studies)\//;
window.Scorer = {
  score: ([docname, , , , score]) => (DESIGN.test(docname) ? score - 30 : score),
  objNameMatch: 20, objPartialMatch: 12,
  objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
