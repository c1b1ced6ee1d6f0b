#include "client/evaluation/report/html_style.h"

namespace privatemail::client {

absl::string_view HtmlStyleSheet() {
  return R"css(:root{color-scheme:light dark;--paper:#fff;--ink:#14181d;--soft:#59616c;--rule:#e3e6ea;--wash:#f6f7f9;--link:#0b62a0}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);font:17px/1.65 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;overflow-wrap:anywhere}
.sheet{max-width:968px;margin:0 auto;padding:72px 24px 96px}
h1,h2{line-height:1.25;letter-spacing:-.012em;text-wrap:balance}
h1{font-size:36px;font-weight:650;margin:6px 0 0;max-width:24em}
h2{font-size:24px;font-weight:620;margin:4px 0 0;max-width:32em}
p{margin:14px 0 0;max-width:40em}
a{color:var(--link);text-underline-offset:.18em;text-decoration-thickness:1px}
a:focus-visible,summary:focus-visible,.table:focus-visible{outline:2px solid var(--link);outline-offset:3px}
.kicker{margin:0;font-size:14px;color:var(--soft);letter-spacing:.02em}
.about{display:grid;grid-template-columns:repeat(auto-fill,minmax(250px,1fr));gap:0 40px;margin:36px 0 0}
.about div{padding:11px 0;border-top:1px solid var(--rule)}
dt{font-size:14px;line-height:1.45;color:var(--soft)}
dd{margin:0;line-height:1.45;font-variant-numeric:tabular-nums}
nav{margin:44px 0 0}
header h2{margin:40px 0 -20px}header h2,nav h2{font-size:15px;font-weight:600;letter-spacing:0;color:var(--soft)}
nav ol{margin:8px 0 0;padding:0;list-style:none;counter-reset:figure}
nav li{display:flex;gap:14px;line-height:1.5;padding:5px 0;counter-increment:figure}
nav li::before{content:counter(figure);flex:none;min-width:1.2em;white-space:nowrap;color:var(--soft);font-variant-numeric:tabular-nums}
section{margin:64px 0 0;padding:40px 0 0;border-top:1px solid var(--rule);scroll-margin-top:0}
figure{margin:30px 0 0}
figure svg{display:block;width:100%;height:auto}
.page svg{max-width:920px}
.phone{display:none;max-width:480px;margin:0 auto}
details{margin:22px 0 0;font-size:15px}
summary{cursor:pointer;color:var(--link);width:fit-content;padding:4px 0}
.table{margin:10px 0 0;max-height:460px;overflow:auto;border:1px solid var(--rule);border-radius:6px}
table{border-collapse:separate;border-spacing:0;width:100%;font-size:14px;line-height:1.4;font-variant-numeric:tabular-nums;overflow-wrap:normal}
caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
th,td{padding:7px 16px;text-align:left;white-space:nowrap;border-top:1px solid var(--rule)}
thead th{position:sticky;top:0;background:var(--wash);font-weight:600;border-top:0;border-bottom:1px solid var(--rule)}
tbody tr:first-child td{border-top:0}
.number{text-align:right}
.files,footer{font-size:15px;color:var(--soft)}
footer{margin:72px 0 0;padding:24px 0 0;border-top:1px solid var(--rule)}
@media (max-width:839px){
body{font-size:16px}
.sheet{padding:36px 16px 64px}
h1{font-size:27px}h2{font-size:21px}
.about{margin-top:26px}
section{margin-top:48px;padding-top:30px}
.page{display:none}.phone{display:block}
th,td{padding:7px 12px}
}
@media screen and (prefers-color-scheme:dark){
:root{--paper:#15181d;--ink:#e6e9ed;--soft:#98a1ad;--rule:#2a2f37;--wash:#1c2027;--link:#7cb8ea}
}
@media print{
@page{margin:18mm 16mm}
:root{color-scheme:light}
body{font-size:10.5pt;line-height:1.5}
.sheet{max-width:none;padding:0}
h1{font-size:22pt}h2{font-size:15pt}
nav,.phone,.files{display:none}.page{display:block}
section{margin-top:26pt;padding-top:16pt}
h2,.kicker{break-after:avoid}figure{break-inside:avoid}
details:not([open]){display:none}
.table{max-height:none;overflow:visible}
thead th{position:static}
}
)css";
}

}  // namespace privatemail::client
