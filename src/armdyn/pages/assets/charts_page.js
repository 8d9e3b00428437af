// A page of text, tables and charts.
"use strict";
Page.startTheme(Page.$("theme"));
Curves.start(JSON.parse(Page.$("data").textContent).charts);
document.body.dataset.ready = "yes";
