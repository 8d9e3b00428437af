// A page with charts but no arm.
"use strict";
Page.startTheme(Page.$("theme"));
Curves.start(JSON.parse(Page.$("data").textContent).charts);
